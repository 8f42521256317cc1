"""Who is who from run to run: threads by creation path, processes by fork path or rank, regions by maker.

`prepare` gives the environment that loads the preload library into a program; `read_identity` reads its log.
Names are loaded when first used: launching needs `prepare` alone, and fast.
"""

from typing import TYPE_CHECKING

from numaplan.common.lazy import lazy_exports

if TYPE_CHECKING:
    from numaplan.profiler.identity.control import read_control as read_control
    from numaplan.profiler.identity.environment import prepare as prepare
    from numaplan.profiler.identity.image import Image as Image
    from numaplan.profiler.identity.image import read_image as read_image
    from numaplan.profiler.identity.log import Record as Record
    from numaplan.profiler.identity.log import read_logs as read_logs
    from numaplan.profiler.identity.read import read_identity as read_identity
    from numaplan.profiler.identity.records import Identity as Identity
    from numaplan.profiler.identity.records import ModuleRecord as ModuleRecord
    from numaplan.profiler.identity.records import ProcessRecord as ProcessRecord
    from numaplan.profiler.identity.records import RegionRecord as RegionRecord
    from numaplan.profiler.identity.records import ThreadRecord as ThreadRecord
    from numaplan.profiler.identity.static import StaticObject as StaticObject
    from numaplan.profiler.identity.static import build_id_of as build_id_of
    from numaplan.profiler.identity.static import static_objects as static_objects

_WHERE = {
    "Identity": "records",
    "Image": "image",
    "ModuleRecord": "records",
    "ProcessRecord": "records",
    "Record": "log",
    "RegionRecord": "records",
    "StaticObject": "static",
    "ThreadRecord": "records",
    "build_id_of": "static",
    "prepare": "environment",
    "read_control": "control",
    "read_identity": "read",
    "read_image": "image",
    "read_logs": "log",
    "static_objects": "static",
}

__all__ = sorted(_WHERE)
__getattr__ = lazy_exports(__name__, _WHERE)
