"""Who is who from run to run: threads by creation path, processes by fork path or rank, regions by maker.

`prepare` gives the environment that loads the preload library into a program; `read_identity` reads its log.
"""

from numaplan.profiler.identity.control import read_control
from numaplan.profiler.identity.environment import prepare
from numaplan.profiler.identity.image import Image, read_image
from numaplan.profiler.identity.log import Record, read_logs
from numaplan.profiler.identity.read import read_identity
from numaplan.profiler.identity.records import (
    Identity,
    ModuleRecord,
    ProcessRecord,
    RegionRecord,
    ThreadRecord,
)
from numaplan.profiler.identity.static import StaticObject, build_id_of, static_objects

__all__ = [
    "Identity",
    "Image",
    "ModuleRecord",
    "ProcessRecord",
    "Record",
    "RegionRecord",
    "StaticObject",
    "ThreadRecord",
    "build_id_of",
    "prepare",
    "read_control",
    "read_identity",
    "read_image",
    "read_logs",
    "static_objects",
]
