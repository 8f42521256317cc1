"""A decoded recording as the profiler's samples, threads, processes and regions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler.backends.base import SampleBlock, SeenThread
from numaplan.profiler.identity import Identity, ProcessRecord, RegionRecord
from numaplan.profiler.machine import Machine, Node
from numaplan.profiler.machine.cpusets import parse_list
from numaplan.profiler.machine.model import MAX_CPUS
from numaplan.profiler.perfdata.attrs import CPU
from numaplan.profiler.perfdata.data_source import is_load, is_store, levels
from numaplan.profiler.perfdata.decoded import Decoded
from numaplan.profiler.perfdata.records import Mapping
from numaplan.profiler.trace.schema import EVENT_CODE

_BLOCK = 1 << 20
_LARGEST_TID = 1 << 22
_LARGEST_ADDRESS = 1 << 63
_GUEST = 4  # cpumode from here on
_MOST_KIB = 1 << 50
_NONE = 255
_LOAD, _STORE = EVENT_CODE["load"], EVENT_CODE["store"]
_EXECUTABLE = 4  # a mapping's protection bit
# What an event's samples are, by its name; the first that matches counts.
_KINDS = (
    (r"mem-loads-aux|^dummy|context-switch", ""),
    (r"faults", "fault"),
    (r"remote_(dram|hitm|fwd|pmm|cache)|node-load-misses", "llc_miss_remote"),
    (r"local_(dram|pmm)|node-loads", "llc_miss_local"),
    (r"mem-stores|all_stores|\bstores\b", "store"),
    (r"mem-loads|mem_trans_retired|all_loads|\bloads\b|ibs_op|arm_spe", "load"),
)


def event_codes(events: Sequence[str]) -> NDArray[np.uint8]:
    """The event code of each event by its name, 255 for those that say nothing of memory."""
    found = []
    for name in events:
        kind = next((kind for pattern, kind in _KINDS if re.search(pattern, name, re.IGNORECASE)), "")
        found.append(EVENT_CODE[kind] if kind else _NONE)
    return np.array(found, dtype=np.uint8)


@dataclass(frozen=True)
class Converted:
    """The memory accesses of a recording: `rows` of its samples, with the event code of each."""

    decoded: Decoded
    rows: NDArray[np.intp]
    codes: NDArray[np.uint8]

    @property
    def start(self) -> int:
        """When the first access was; recordings of single threads may have no times: their first thread's."""
        first = int(self.decoded.samples["time"][self.rows].min(initial=np.iinfo(np.int64).max))
        began = [one.start for one in self.decoded.threads if one.start > 0]
        return first if first > 0 else min(began, default=0)

    def blocks(self, machine: Machine) -> Iterator[SampleBlock]:
        """The samples in blocks; a sample's node is that of its cpu."""
        node_of = np.full(1 << 16, -1, dtype=np.int16)
        for cpu, node in machine.node_of_cpu.items():
            node_of[cpu] = node
        for start in range(0, len(self.rows), _BLOCK):
            yield self._block(self.rows[start : start + _BLOCK], self.codes[start : start + _BLOCK], node_of)

    def _block(
        self, rows: NDArray[np.intp], codes: NDArray[np.uint8], node_of: NDArray[np.int16]
    ) -> SampleBlock:
        samples = self.decoded.samples
        kinds = [attr["sample_type"] for attr in self.decoded.header["attrs"]]
        has_cpu = np.array([bool(kind & CPU) for kind in kinds])[samples["event"][rows]]
        cpu = np.where(has_cpu & (samples["cpu"][rows] < MAX_CPUS), samples["cpu"][rows], -1).astype(np.int64)
        source = samples["data_src"][rows]
        weight = samples["weight"][rows]
        latency = np.where(weight > 0, np.minimum(weight, np.uint64(2**31 - 1)), 0).astype(np.int32)
        return SampleBlock(
            time_ns=np.maximum(samples["time"][rows], self.start),
            pid=samples["pid"][rows].astype(np.int32),
            tid=samples["tid"][rows].astype(np.int32),
            cpu=np.where(cpu < 1 << 15, cpu, -1).astype(np.int16),
            node=np.where(cpu >= 0, node_of[cpu], -1).astype(np.int16),
            addr=samples["addr"][rows],
            phys_addr=samples["phys_addr"][rows],
            ip=samples["ip"][rows],
            event=codes,
            is_write=(codes == _STORE) | is_store(source),
            level=levels(source),
            latency=np.where(weight > 0, latency, -1).astype(np.int32),
        )

    def processes(self) -> dict[int, str]:
        """The name `pN` of each process that has samples, in the order of the pids."""
        pids = np.unique(self.decoded.samples["pid"][self.rows]).tolist()
        return {pid: f"p{index}" for index, pid in enumerate(pids)}

    def threads(self) -> list[SeenThread]:
        """The threads of those processes."""
        named = self.processes()
        return [
            SeenThread(one.pid, one.tid, one.name, one.parent_tid, one.start, one.end)
            for one in self.decoded.threads
            if one.pid in named and 0 <= one.tid <= _LARGEST_TID
        ]

    def identity(self) -> Identity:
        """Processes and regions, as far as the recorded mappings tell."""
        named = self.processes()
        names = {one.pid: one.name for one in self.decoded.threads if one.tid == one.pid}
        maps = [one for one in self.decoded.maps if one.pid in named and _sane(one)]
        programs = {(one.pid, one.filename) for one in maps if one.protection & _EXECUTABLE}
        return Identity(
            processes=tuple(
                ProcessRecord(name, pid, "", (), names.get(pid, ""), "", -1, -1)
                for pid, name in named.items()
            ),
            regions=tuple(_region(one, named[one.pid], programs) for one in maps),
        )


def _sane(one: Mapping) -> bool:
    return one.length > 0 and one.addr + one.length < _LARGEST_ADDRESS


def _region(one: Mapping, process: str, programs: set[tuple[int, str]]) -> RegionRecord:
    base = one.filename.rpartition("/")[2]
    name = f"{base}+0x{one.offset:x}"
    if one.filename == "[stack]":
        kind, name = "stack", "0"
    elif one.filename == "[heap]":
        kind = "heap"
    elif one.filename.startswith("//anon") or not one.filename or one.filename.startswith("/dev/zero"):
        kind = "mmap"
    elif one.filename.startswith("["):
        kind = "other"
    elif one.protection >= 0 and one.protection & _EXECUTABLE:
        kind = "text"
    else:
        kind = "static" if (one.pid, one.filename) in programs else "file"
    return RegionRecord(
        process=process,
        pid=one.pid,
        kind=kind,
        name=name,
        build_id=one.build_id,
        start_addr=one.addr,
        bytes=one.length,
        thread_path="0",
        sequence=0,
        start_ns=max(one.time, 0),
        end_ns=-1,
    )


def convert(decoded: Decoded) -> Converted:
    """Choose the samples that are memory accesses of user programs: an address, no guest, a thread."""
    samples = decoded.samples
    codes = event_codes(decoded.events)[samples["event"]]
    # Where the hardware says what the access was it is believed: one event can sample both.
    told = np.where(
        is_store(samples["data_src"]), _STORE, np.where(is_load(samples["data_src"]), _LOAD, _NONE)
    )
    by_source = (told != _NONE) & ((codes == _LOAD) | (codes == _STORE) | (codes == _NONE))
    codes = np.where(by_source, told, codes).astype(np.uint8)
    valid = (samples["addr"] != 0) & (samples["cpumode"] < _GUEST) & (codes != _NONE) & (samples["time"] >= 0)
    for name in ("pid", "tid"):
        valid &= (samples[name] >= 0) & (samples[name] <= _LARGEST_TID)
    rows = np.flatnonzero(valid)
    return Converted(decoded, rows, codes[rows])


def machine_of(decoded: Decoded) -> Machine:
    """The machine the recording was made on: nodes and cpus as perf wrote them, else one node.

    Raises UsageError when what perf wrote makes no machine.
    """
    topology = decoded.header.get("numa_topology")
    if topology:
        nodes = tuple(
            Node(
                id=node["node"],
                cpus=parse_list(node["cpus"], "numa_topology"),
                memory_bytes=min(node["memory_kib"], _MOST_KIB) * 1024,
            )
            for node in sorted(topology, key=lambda node: int(node["node"]))
        )
    else:
        cpus = decoded.samples["cpu"]
        seen = int(cpus[cpus < MAX_CPUS].max(initial=0))
        told = decoded.header.get("nrcpus", {}).get("available", 0)
        count = min(max(seen + 1, told), MAX_CPUS)
        nodes = (Node(id=0, cpus=tuple(range(count))),)
    return Machine(name=str(decoded.header.get("hostname", "recorded")), nodes=nodes)
