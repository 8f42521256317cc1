"""What follows from two snapshots of a machine: who is busy where, whose memory is where, who idles."""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec

from numaplan.machine import Machine

from ..read.model import Process, Sampled, Snapshot, Thread

BUSY = 0.25  # of the time a thread ran or waited for a cpu: what idles more does not matter
IDLE = 0.2  # of the time a cpu did something: it has room
LEAST_SAMPLES = 50  # of a process: fewer tell nothing
USUAL_CACHE = 2 << 20  # bytes, where the machine does not tell


class BusyThread(msgspec.Struct, frozen=True):
    """A thread that wanted a cpu: shares of the time that it ran and waited for one; where."""

    pid: int
    thread: Thread
    ran: float
    waited: float
    node: int

    @property
    def demand(self) -> float:
        """The share of the time that it wanted to run."""
        return self.ran + self.waited


class Work(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A process at work: its busy threads, its own memory by node, without page cache; what a sampler saw."""

    process: Process
    threads: tuple[BusyThread, ...]
    memory: dict[int, int]
    ran: float
    sampled: Sampled | None = None

    @property
    def bytes(self) -> int:
        """Its memory."""
        return sum(self.memory.values())

    @cached_property
    def nodes(self) -> dict[int, float]:
        """The share of its demand on each node where its busy threads run."""
        found: Counter[int] = Counter()
        total = sum(thread.demand for thread in self.threads)
        for thread in self.threads:
            found[thread.node] += thread.demand / total  # type: ignore[assignment]
        return dict(sorted(found.items()))

    @property
    def local(self) -> float:
        """The share of its memory that is on its threads' nodes, if each thread uses all of it alike."""
        return sum(share * self.share(node) for node, share in self.nodes.items())

    def share(self, node: int) -> float:
        """The share of its memory on a node."""
        return self.memory.get(node, 0) / self.bytes if self.bytes else 0.0

    def by_policy(self, *names: str) -> dict[str, dict[int, int]]:
        """Memory under each policy with one of these names, by node."""
        found: dict[str, dict[int, int]] = {}
        for part in self.process.memory.parts if self.process.memory else ():
            if part.kind != "file" and part.policy.startswith(names):
                add(found.setdefault(part.policy, {}), part.nodes)
        return found

    def by_kind(self, kind: str) -> dict[int, int]:
        """Memory of one kind by node."""
        found: dict[int, int] = {}
        for part in self.process.memory.parts if self.process.memory else ():
            if part.kind == kind:
                add(found, part.nodes)
        return found

    @property
    def command(self) -> tuple[str, ...]:
        """What it was started with."""
        return tuple(self.process.argv) if any(self.process.argv) else (self.process.name,)


def add(total: dict[int, int], more: Mapping[int, int]) -> None:
    """Add counts to counts."""
    for key, value in more.items():
        total[key] = total.get(key, 0) + value


class View:
    """Two snapshots on a machine, and what follows from them."""

    def __init__(
        self,
        before: Snapshot,
        after: Snapshot,
        machine: Machine,
        sampled: Mapping[int, Sampled] | None = None,
    ) -> None:
        self.before, self.after, self.machine = before, after, machine
        self._sampled = sampled or {}
        known = {process.pid: process for process in before.processes}
        lasted = [one.time_ns - known[one.pid].time_ns for one in after.processes if one.pid in known]
        self.seconds = max([1e6, *lasted]) / 1e9
        self.works = tuple(self._works(known))

    def _works(self, known: Mapping[int, Process]) -> Iterable[Work]:
        for process in self.after.processes:
            then, seconds = dict[int, Thread](), self.seconds
            if process.pid in known:
                then = {thread.tid: thread for thread in known[process.pid].threads}
                seconds = max(1e6, process.time_ns - known[process.pid].time_ns) / 1e9
            busy, ran = [], 0.0
            for thread in process.threads:
                used = self._busy(process.pid, thread, then.get(thread.tid), seconds)
                ran += used.ran
                if used.demand >= BUSY and used.node >= 0:
                    busy.append(used)
            yield Work(
                process=process,
                threads=tuple(busy),
                memory=_memory(process),
                ran=ran,
                sampled=self._seen(process.pid),
            )

    def _busy(self, pid: int, thread: Thread, then: Thread | None, seconds: float) -> BusyThread:
        then = then or thread  # it began meanwhile: what it did is seen at the next look
        ran = max(0.0, (thread.ran_ns - then.ran_ns) / 1e9 / seconds)
        waited = max(0.0, (thread.waited_ns - then.waited_ns) / 1e9 / seconds)
        home = self.machine.node_of_cpu
        there = tuple(cpu for cpu in thread.cpus if cpu in home)  # offline ones are allowed, too
        return BusyThread(
            pid, msgspec.structs.replace(thread, cpus=there), ran, waited, home.get(thread.cpu, -1)
        )

    def _seen(self, pid: int) -> Sampled | None:
        found = self._sampled.get(pid)
        return found if found and found.accesses >= LEAST_SAMPLES else None

    @cached_property
    def busy(self) -> tuple[BusyThread, ...]:
        """The busy threads of all processes."""
        return tuple(thread for work in self.works for thread in work.threads)

    @cached_property
    def with_memory(self) -> tuple[Work, ...]:
        """The processes at work whose memory matters: busy, and with more of it than caches hold."""
        return tuple(work for work in self.works if work.threads and work.bytes > self.cache_bytes)

    @cached_property
    def cache_bytes(self) -> int:
        """What the last-level cache of one cpu holds."""
        return max((cache.bytes for cache in self.machine.caches), default=USUAL_CACHE)

    @cached_property
    def idle_cpus(self) -> frozenset[int]:
        """The cpus on which nothing much ran, and no busy thread of ours is."""
        before = self.before.system.cpus
        found = set()
        for cpu, (busy, idle) in self.after.system.cpus.items():
            busy_then, idle_then = before.get(cpu, (0, 0))
            ticks = busy - busy_then + idle - idle_then
            if ticks > 0 and (busy - busy_then) / ticks <= IDLE:
                found.add(cpu)
        return frozenset(found & set(self.machine.cpus) - {thread.thread.cpu for thread in self.busy})

    def cpus_of(self, node: int) -> tuple[int, ...]:
        """The cpus of a node; none of one that the machine does not show."""
        return next((one.cpus for one in self.machine.nodes if one.id == node), ())

    def nodes_of(self, cpus: Iterable[int]) -> tuple[int, ...]:
        """The nodes that cpus belong to, ascending."""
        home = self.machine.node_of_cpu
        return tuple(sorted({home[cpu] for cpu in cpus if cpu in home}))

    def confined(self, threads: Iterable[BusyThread]) -> tuple[int, ...]:
        """The nodes that these threads may run on."""
        return self.nodes_of({cpu for thread in threads for cpu in thread.thread.cpus})

    def free(self, node: int) -> int:
        """Bytes of a node that are free."""
        state = self.after.system.nodes.get(node)
        return state.free if state else 0

    def nearest(self, cpus: Iterable[int], node: int) -> list[int]:
        """Cpus by their distance from a node."""
        row = self.machine.distance_rows[self.machine.index_of_node(node)]
        home = self.machine.node_of_cpu
        return sorted(cpus, key=lambda cpu: (row[self.machine.index_of_node(home[cpu])], cpu))

    def counted(self, name: str) -> int:
        """How much one of the kernel's counters grew."""
        then = self.before.system.counters
        return max(0, self.after.system.counters.get(name, 0) - then.get(name, 0))


def _memory(process: Process) -> dict[int, int]:
    found: dict[int, int] = {}
    for part in process.memory.parts if process.memory else ():
        if part.kind != "file":
            add(found, part.nodes)
    return found
