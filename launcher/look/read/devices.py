"""GPUs and network adapters that a process has open, and the nodes that they are attached to."""

import os
import re
from contextlib import suppress
from pathlib import Path

from .files import fields, number, numbered, text
from .model import Device

_OPEN = re.compile(r"/dev/(?:dri/(?:card|renderD)|nvidia|infiniband/uverbs)\d+")


def open_devices(root: Path, process: Path) -> tuple[Device, ...]:
    """The devices among a process's open files whose node is known; none where we may not see them."""
    paths = set()
    for fd in numbered(process / "fd"):
        with suppress(OSError):
            paths.add(os.readlink(process / f"fd/{fd}"))  # noqa: PTH115  # devices need not exist here
    found = ((path, _node(root, path)) for path in sorted(paths) if _OPEN.fullmatch(path))
    return tuple(Device(path, node) for path, node in found if node is not None and node >= 0)


def _node(root: Path, path: str) -> int | None:
    name = path.rpartition("/")[2]
    if name.startswith("nvidia"):
        return _node_of_nvidia(root, name.removeprefix("nvidia"))
    kind = "infiniband_verbs" if name.startswith("uverbs") else "drm"
    return number(root / f"sys/class/{kind}/{name}/device/numa_node")


def _node_of_nvidia(root: Path, minor: str) -> int | None:
    """By what the driver says of each card: its minor number and its address on the bus."""
    for about in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        if fields(text(about)).get("Device Minor") == minor:
            return number(root / f"sys/bus/pci/devices/{about.parent.name}/numa_node")
    return None
