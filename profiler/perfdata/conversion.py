"""A decoded recording as the profiler's samples, threads, processes and regions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler.backends.base import SampleBlock, SeenThread
from numaplan.profiler.identity import Identity
from numaplan.profiler.machine import Machine, Node
from numaplan.profiler.machine.cpusets import parse_list
from numaplan.profiler.machine.model import MAX_CPUS
from numaplan.profiler.perfdata.attrs import CPU
from numaplan.profiler.perfdata.data_source import is_load, is_store, levels
from numaplan.profiler.perfdata.decoded import BLOCK, Decoded
from numaplan.profiler.perfdata.family import LARGEST_TID
from numaplan.profiler.perfdata.identities import Facts, identity_of
from numaplan.profiler.trace.schema import EVENT_CODE

NEVER = int(np.iinfo(np.int64).max)
_GUEST = 4  # cpumode from here on
_MOST_KIB = 1 << 50
_NONE = 255
_LOAD, _STORE = EVENT_CODE["load"], EVENT_CODE["store"]

Samples = Mapping[str, NDArray[Any]]
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
        first = int(self.decoded.samples["time"][self.rows].min(initial=NEVER))
        return start_of(self.decoded, first)

    def blocks(self, machine: Machine) -> Iterator[SampleBlock]:
        """The samples in blocks; a sample's node is that of its cpu."""
        maker = BlockMaker(self.decoded, machine, self.start)
        for at in range(0, len(self.rows), BLOCK):
            rows, codes = self.rows[at : at + BLOCK], self.codes[at : at + BLOCK]
            yield maker.block(self.decoded.samples, rows, codes)

    def threads(self) -> list[SeenThread]:
        """The threads of the processes that have accesses."""
        pids = self._pids()
        return [
            SeenThread(one.pid, one.tid, one.name, one.parent_tid, one.start, one.end)
            for one in self.decoded.threads
            if one.pid in pids and 0 <= one.tid <= LARGEST_TID
        ]

    def identity(self) -> Identity:
        """Processes, threads and regions, as far as the records tell."""
        decoded = self.decoded
        facts = Facts(decoded.threads, decoded.maps, decoded.execs, same_host=True)
        return identity_of(facts, self._pids())[0]

    def _pids(self) -> set[int]:
        return set(np.unique(self.decoded.samples["pid"][self.rows]).tolist())


def start_of(decoded: Decoded, first: int) -> int:
    """When a recording began whose first access is at `first` (0 or NEVER: it has no times)."""
    began = [one.start for one in decoded.threads if one.start > 0]
    return first if 0 < first < NEVER else min(began, default=0)


class BlockMaker:
    """Makes the profiler's blocks of a recording's samples. start: times before it are moved there."""

    def __init__(self, decoded: Decoded, machine: Machine, start: int) -> None:
        kinds = [attr["sample_type"] for attr in decoded.header["attrs"]]
        self._has_cpu = np.array([bool(kind & CPU) for kind in kinds])
        self._start = start
        self._node_of = np.full(1 << 16, -1, dtype=np.int16)
        for cpu, node in machine.node_of_cpu.items():
            self._node_of[cpu] = node

    def block(
        self, samples: Samples, rows: NDArray[np.intp], codes: NDArray[np.uint8], shift: int = 0
    ) -> SampleBlock:
        """The chosen rows of the samples; shift: ns to add to their times."""
        has_cpu = self._has_cpu[samples["event"][rows]]
        cpu = samples["cpu"][rows]
        cpu = np.where(has_cpu & (cpu < MAX_CPUS), cpu, -1)
        source, weight = samples["data_src"][rows], samples["weight"][rows]
        latency = np.minimum(weight, np.uint64(2**31 - 1)).astype(np.int32)
        return SampleBlock(
            time_ns=np.maximum(samples["time"][rows] + shift, self._start),
            pid=samples["pid"][rows].astype(np.int32),
            tid=samples["tid"][rows].astype(np.int32),
            cpu=np.where(cpu < 1 << 15, cpu, -1).astype(np.int16),
            node=np.where(cpu >= 0, self._node_of[cpu], -1).astype(np.int16),
            addr=samples["addr"][rows],
            phys_addr=samples["phys_addr"][rows],
            ip=samples["ip"][rows],
            event=codes,
            is_write=(codes == _STORE) | is_store(source),
            level=levels(source),
            latency=np.where(latency > 0, latency, np.int32(-1)),
        )


def choose(samples: Samples, kinds: NDArray[np.uint8]) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """Rows of the samples that are accesses of user programs (address, no guest, thread), and event codes.

    kinds: what `event_codes` says of the events.
    """
    codes = kinds[samples["event"]]
    if samples["data_src"].any():
        # Where the hardware says what the access was it is believed: one event can sample both.
        source = samples["data_src"]
        told = np.where(is_store(source), _STORE, np.where(is_load(source), _LOAD, _NONE)).astype(np.uint8)
        by_source = (told != _NONE) & ((codes == _LOAD) | (codes == _STORE) | (codes == _NONE))
        codes = np.where(by_source, told, codes)
    valid = (samples["addr"] != 0) & (samples["cpumode"] < _GUEST) & (codes != _NONE) & (samples["time"] >= 0)
    for name in ("pid", "tid"):
        valid &= (samples[name] >= 0) & (samples[name] <= LARGEST_TID)
    rows = np.flatnonzero(valid)
    return rows, codes[rows]


def convert(decoded: Decoded) -> Converted:
    """Choose the samples that are memory accesses of user programs: an address, no guest, a thread."""
    return Converted(decoded, *choose(decoded.samples, event_codes(decoded.events)))


def machine_of(decoded: Decoded, last_cpu: int = 0) -> Machine:
    """The machine the recording was made on: nodes and cpus as perf wrote them, else one node.

    last_cpu: the highest number among samples that are not in `decoded`. Raises UsageError when what perf
    wrote makes no machine.
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
        seen = max(int(cpus[cpus < MAX_CPUS].max(initial=0)), last_cpu)
        told = decoded.header.get("nrcpus", {}).get("available", 0)
        count = min(max(seen + 1, told), MAX_CPUS)
        nodes = (Node(id=0, cpus=tuple(range(count))),)
    return Machine(name=str(decoded.header.get("hostname", "recorded")), nodes=nodes)
