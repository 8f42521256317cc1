"""The header features: what perf wrote about the machine, the command and the events."""

import struct
from collections.abc import Callable
from typing import Any

from .attrs import Attr, parse_attr

TRACING_DATA, BUILD_ID, HOSTNAME, OSRELEASE, VERSION, ARCH, NRCPUS, CPUDESC, CPUID, TOTAL_MEM = range(1, 11)
CMDLINE, EVENT_DESC, CPU_TOPOLOGY, NUMA_TOPOLOGY, BRANCH_STACK, PMU_MAPPINGS, GROUP_DESC = range(11, 18)
AUXTRACE, STAT, CACHE, SAMPLE_TIME, MEM_TOPOLOGY, CLOCKID, DIR_FORMAT = range(18, 25)
COMPRESSED, CLOCK_DATA = 27, 29
_MOST_ITEMS = 1 << 16
_MISC_BUILD_ID_SIZE = 1 << 15
_BUILD_ID_NAME = 36  # header, pid, 20 bytes of id with its length behind it, padding


class CutError(Exception):
    """A feature ends before what it claims to hold."""


class Cursor:
    """Reads numbers and strings from a feature's bytes; raises CutError at the end."""

    def __init__(self, data: bytes, order: str) -> None:
        self._data = data
        self._order = order
        self._at = 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._at:
            raise CutError
        self._at += size
        return self._data[self._at - size : self._at]

    def u32(self) -> int:
        return int(struct.unpack(self._order + "I", self.take(4))[0])

    def u64(self) -> int:
        return int(struct.unpack(self._order + "Q", self.take(8))[0])

    def count(self) -> int:
        """A number of items; each takes at least a byte, so more than the bytes left is damage."""
        count = self.u32()
        if count > min(len(self._data) - self._at, _MOST_ITEMS):
            raise CutError
        return count

    def text(self) -> str:
        """A string with its length before it, padded with NULs."""
        return self.take(self.u32()).split(b"\0", 1)[0].decode("utf-8", "replace")


def _texts(cursor: Cursor) -> list[str]:
    return [cursor.text() for _ in range(cursor.count())]


def _cpus(cursor: Cursor) -> dict[str, int]:
    return {"available": cursor.u32(), "online": cursor.u32()}


def _numa_topology(cursor: Cursor) -> list[dict[str, Any]]:
    return [
        {
            "node": cursor.u32(),
            "memory_kib": cursor.u64(),
            "memory_free_kib": cursor.u64(),
            "cpus": cursor.text(),
        }
        for _ in range(cursor.count())
    ]


def _pmu_mappings(cursor: Cursor) -> dict[int, str]:
    return {cursor.u32(): cursor.text() for _ in range(cursor.count())}


def _sample_time(cursor: Cursor) -> tuple[int, int]:
    return cursor.u64(), cursor.u64()


def _memory_topology(cursor: Cursor) -> dict[str, Any]:
    version, block, count = cursor.u64(), cursor.u64(), cursor.u64()
    nodes = []
    for _ in range(min(count, _MOST_ITEMS)):
        node, bits = cursor.u64(), cursor.u64()
        words = [cursor.u64() for _ in range(min((bits + 63) // 64, _MOST_ITEMS))]
        nodes.append({"node": node, "blocks": sum(word.bit_count() for word in words)})
    return {"version": version, "block_bytes": block, "nodes": nodes}


def _clock_data(cursor: Cursor) -> dict[str, int]:
    version = cursor.u32()
    return {
        "version": version,
        "clockid": cursor.u32(),
        "wall_clock_ns": cursor.u64(),
        "clockid_ns": cursor.u64(),
    }


def _compressed(cursor: Cursor) -> dict[str, int]:
    return {name: cursor.u32() for name in ("version", "type", "level", "ratio", "mmap_len")}


_READERS: dict[int, tuple[str, Callable[[Cursor], Any]]] = {
    HOSTNAME: ("hostname", Cursor.text),
    OSRELEASE: ("os_release", Cursor.text),
    VERSION: ("version", Cursor.text),
    ARCH: ("arch", Cursor.text),
    NRCPUS: ("nrcpus", _cpus),
    CPUDESC: ("cpudesc", Cursor.text),
    CPUID: ("cpuid", Cursor.text),
    TOTAL_MEM: ("total_mem_kib", Cursor.u64),
    CMDLINE: ("cmdline", _texts),
    NUMA_TOPOLOGY: ("numa_topology", _numa_topology),
    PMU_MAPPINGS: ("pmu_mappings", _pmu_mappings),
    SAMPLE_TIME: ("sample_time", _sample_time),
    MEM_TOPOLOGY: ("mem_topology", _memory_topology),
    CLOCKID: ("clockid_resolution_ns", Cursor.u64),
    CLOCK_DATA: ("clock_data", _clock_data),
    COMPRESSED: ("compressed", _compressed),
}


def read_feature(number: int, data: bytes, order: str, header: dict[str, Any], warnings: list[str]) -> None:
    """Put what feature `number` says into `header`, under its name; damage becomes a warning."""
    if number not in _READERS:
        return
    name, reader = _READERS[number]
    try:
        header[name] = reader(Cursor(data, order))
    except CutError:
        warnings.append(f"the feature {name} is damaged: left out")


def read_build_ids(data: bytes, order: str) -> dict[str, str]:
    """Build id by file name from the records of the feature BUILD_ID (or one of a pipe); stops at damage."""
    found: dict[str, str] = {}
    at = 0
    while at + _BUILD_ID_NAME < len(data):
        misc, size = struct.unpack_from(order + "2H", data, at + 4)
        if size <= _BUILD_ID_NAME or size > len(data) - at:
            break
        length = min(data[at + 32], 20) if misc & _MISC_BUILD_ID_SIZE else 20
        name = data[at + _BUILD_ID_NAME : at + size].split(b"\0", 1)[0].decode("utf-8", "replace")
        found[name] = data[at + 12 : at + 12 + length].hex()
        at += size
    return found


def read_thread_map(record: bytes, order: str) -> dict[int, str]:
    """Names by tid of a THREAD_MAP record (u64 count; each u64 tid, 16 characters); whole ones only."""
    found: dict[int, str] = {}
    count = struct.unpack_from(order + "Q", record, 8)[0] if len(record) >= 16 else 0
    for at in range(16, min(16 + 24 * count, len(record) - 23), 24):
        tid, raw = struct.unpack_from(order + "Q16s", record, at)
        if name := raw.split(b"\0", 1)[0].decode("utf-8", "replace"):
            found[tid] = name
    return found


def read_event_desc(data: bytes, order: str, warnings: list[str]) -> list[Attr]:
    """The events of the feature EVENT_DESC, with names and ids, as far as it can be read."""
    cursor, events = Cursor(data, order), []
    try:
        count, size = cursor.count(), cursor.u32()
        for _ in range(count):
            attr = parse_attr(cursor.take(size), order)
            ids = cursor.count()
            attr.name = cursor.text()
            attr.ids = [cursor.u64() for _ in range(ids)]
            events.append(attr)
    except CutError:
        warnings.append("the feature event_desc is damaged: names of events may be missing")
    return events
