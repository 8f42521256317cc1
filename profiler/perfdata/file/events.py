"""The events of a recording and what to call them.

Attrs and names come from many places in a file; an event that has no name there is called as perf calls it.
"""

import struct
from collections.abc import Mapping
from typing import Any

from .attrs import SMALLEST, Attr, parse_attr

HARDWARE, SOFTWARE, TRACEPOINT, CACHE, RAW, BREAKPOINT = range(6)
_HARDWARE = (
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
)
_SOFTWARE = (
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
)
_CACHES = ("L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node")
_OPERATIONS = (("loads", "load-misses"), ("stores", "store-misses"), ("prefetches", "prefetch-misses"))
_UPDATE_NAME = 2
_MOST_EVENTS = 4096  # of a pipe, where each one may come between samples
_OLD_TYPE = struct.Struct("Q64s")


class Events:
    """Collects attrs (header or ATTR records) and names (features, EVENT_UPDATE, tables of old versions)."""

    def __init__(self, attrs: list[Attr], order: str) -> None:
        self.attrs = attrs
        self._order = order
        self._described: list[Attr] = []
        self._names_by_id: dict[int, str] = {}
        self._names_by_config: dict[int, str] = {}

    def add_record(self, record: bytes) -> bool:
        """Take an ATTR record of a pipe; False when its attr does not fit in it, or there are too many."""
        if len(record) < 8 + SMALLEST or len(self.attrs) >= _MOST_EVENTS:
            return False
        (size,) = struct.unpack_from(self._order + "I", record, 12)
        size = size or SMALLEST
        if not SMALLEST <= size <= len(record) - 8:
            return False
        attr = parse_attr(record[8 : 8 + size], self._order)
        count = (len(record) - 8 - size) // 8
        attr.ids = list(struct.unpack_from(f"{self._order}{count}Q", record, 8 + size))
        self.attrs.append(attr)
        return True

    def describe(self, described: list[Attr]) -> None:
        """Take the events of EVENT_DESC, and from them the ids that could not be read elsewhere."""
        self._described = described
        if [attr.config for attr in described] == [attr.config for attr in self.attrs]:
            for attr, same in zip(self.attrs, described, strict=True):
                attr.ids = attr.ids or same.ids

    def update(self, record: bytes) -> bool:
        """Take an EVENT_UPDATE record; returns whether it brings a name that was not known."""
        if len(record) <= 24:
            return False
        kind, number = struct.unpack_from(self._order + "2Q", record, 8)
        name = _text(record[24:])
        if kind != _UPDATE_NAME or self._names_by_id.get(number) == name:
            return False
        self._names_by_id[number] = name
        return True

    def add_types(self, table: bytes) -> None:
        """Take what perf before 3.11 wrote: pairs of a config and a name of 64 bytes."""
        whole = len(table) // _OLD_TYPE.size * _OLD_TYPE.size
        for config, name in struct.iter_unpack(self._order + "Q64s", table[:whole]):
            self._names_by_config.setdefault(config, _text(name))

    def names(self, header: dict[str, Any]) -> list[str]:
        """The name of each event, in the order of the attrs."""
        pmus = header.get("pmu_mappings", {})
        named = {number: attr.name for attr in self._described for number in attr.ids}
        same_order = [attr.config for attr in self._described] == [attr.config for attr in self.attrs]
        names = []
        for index, attr in enumerate(self.attrs):
            by_id = [found[n] for found in (self._names_by_id, named) for n in attr.ids if n in found]
            by_place = self._described[index].name if same_order else ""
            old = self._names_by_config.get(attr.config, "") if attr.type == TRACEPOINT else ""
            names.append(next(filter(None, [*by_id, by_place, old]), "") or _default_name(attr, pmus))
        return names


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


def _default_name(attr: Attr, pmus: Mapping[int, str]) -> str:
    """perf's name for the event, modifiers included; pmus: names of dynamic PMU types, where known."""
    config = attr.config & 0xFFFFFFFF if attr.type == HARDWARE else attr.config
    if attr.type == HARDWARE and config < len(_HARDWARE):
        return _HARDWARE[config] + _modifiers(attr)
    if attr.type == SOFTWARE and config < len(_SOFTWARE):
        return _SOFTWARE[config] + _modifiers(attr)
    if attr.type == CACHE and (name := _cache_name(config)):
        return name + _modifiers(attr)
    if attr.type == RAW:
        return f"raw 0x{config:x}" + _modifiers(attr)
    if attr.type == TRACEPOINT:
        return f"tracepoint:{config}"
    if attr.type == BREAKPOINT:
        return f"mem:0x{attr.config1:x}" + _modifiers(attr)
    if attr.type in pmus:
        return f"{pmus[attr.type]}/config=0x{config:x}/" + _modifiers(attr)
    return f"event {attr.type}:0x{config:x}"


def _cache_name(config: int) -> str:
    cache, operation, result = config & 0xFF, config >> 8 & 0xFF, config >> 16 & 0xFF
    if cache >= len(_CACHES) or operation >= len(_OPERATIONS) or result > 1:
        return ""
    return f"{_CACHES[cache]}-{_OPERATIONS[operation][result]}"


def _modifiers(attr: Attr) -> str:
    """`:u` for user only, `:pp` for precision, `:H` for host only …, as perf appends them."""
    flags, letters = attr.flags, ""
    guests_left_out_by_default = False
    if flags & {"exclude_kernel", "exclude_user", "exclude_hv"}:
        spaces = (("exclude_kernel", "k"), ("exclude_user", "u"), ("exclude_hv", "h"))
        letters += "".join(letter for name, letter in spaces if name not in flags)
        guests_left_out_by_default = True
    if attr.precise_ip:
        letters += "p" * attr.precise_ip
        guests_left_out_by_default = True
    if "exclude_host" in flags or ("exclude_guest" in flags) == guests_left_out_by_default:
        letters += "H" * ("exclude_host" not in flags) + "G" * ("exclude_guest" not in flags)
    return f":{letters}" if letters else ""
