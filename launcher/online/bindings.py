"""Which threads may be moved, what they were bound to before, and binding them.

A thread that others bound (by taskset, by itself, by another tool) is left alone, also when that happens
later: the mask that it has is then not the one that we gave it.
"""

from contextlib import suppress
from dataclasses import dataclass, field

from .system import Cpus, LocalSystem, System


@dataclass
class Bindings:
    """Masks by tid. planned: masks that a plan gave, which are ours to change; everything: the cpus that
    threads with these would have without the plan."""

    planned: frozenset[Cpus] = frozenset()
    system: System = field(default_factory=LocalSystem)
    everything: Cpus = frozenset()
    _original: dict[int, Cpus] = field(default_factory=dict)
    _bound: dict[int, Cpus] = field(default_factory=dict)
    _pid_of: dict[int, int] = field(default_factory=dict)
    # Masks that we gave at any time, which who is made then has, too, and what each replaced; by pid, those
    # of its threads.
    _masks_given: dict[Cpus, Cpus] = field(default_factory=dict)
    _given_in: dict[int, set[Cpus]] = field(default_factory=dict)
    _foreign: set[int] = field(default_factory=set)
    _process_cpus: dict[int, Cpus] = field(
        default_factory=dict
    )  # by pid, what its threads would have had in all at first, without us

    def __post_init__(self) -> None:
        self._masks_given |= {mask: self.everything or mask for mask in self.planned}

    def movable(self, pid: int, tids: list[int]) -> dict[int, bool]:
        """Whether each thread of a process may be moved."""
        masks = {tid: mask for tid in tids if (mask := self.system.allowed_cpus(tid)) is not None}
        if pid not in self._process_cpus and masks:
            without_us = (self._masks_given.get(mask, mask) for mask in masks.values())
            self._process_cpus[pid] = frozenset().union(*without_us)
        for tid in masks.keys() - self._original.keys():
            self._meet(pid, tid, masks[tid])
        return {tid: tid in masks and self._movable(pid, tid, masks[tid]) for tid in tids}

    def _meet(self, pid: int, tid: int, mask: Cpus) -> None:
        """A thread that is new; one that another made which we had bound is as good as bound by us."""
        self._pid_of[tid], self._original[tid] = pid, mask
        if mask in self._given_in.get(pid, ()):
            self._original[tid], self._bound[tid] = self._process_cpus[pid], mask

    def _movable(self, pid: int, tid: int, mask: Cpus) -> bool:
        bound = self._bound.get(tid)
        if bound is not None:
            if mask != bound:
                self._foreign.add(tid)
            return tid not in self._foreign
        # A process inherits its creator's mask: one that we gave is ours in the child, too.
        return mask in self._masks_given or mask >= self.process_cpus(pid, mask)

    @property
    def foreign(self) -> frozenset[int]:
        """Threads that somebody else bound after us."""
        return frozenset(self._foreign)

    def process_cpus(self, pid: int, unknown: Cpus = frozenset()) -> Cpus:
        """The cpus on which a process's threads may be; `unknown` of one that was not met."""
        return self._process_cpus.get(pid, unknown)

    def usable_cpus(self, pid: int, cpus: Cpus) -> Cpus:
        """Those of the cpus on which the process's threads may be."""
        return cpus & self.process_cpus(pid, cpus)

    def mask(self, tid: int) -> Cpus | None:
        """What a thread is bound to now."""
        return self._bound.get(tid) or self._original.get(tid)

    def is_bound(self, tid: int) -> bool:
        """Whether we bound a thread."""
        return tid in self._bound

    def bind(self, tid: int, cpus: Cpus) -> None:
        """Bind a thread; raises OSError (ended, not ours, no such cpus here)."""
        self.system.bind(tid, cpus)
        self._bound[tid] = cpus
        pid = self._pid_of.get(tid, -1)
        whole = self.process_cpus(pid, cpus)
        self._masks_given[cpus] = self._masks_given.get(cpus, whole) & whole
        if not cpus >= whole:
            self._given_in.setdefault(pid, set()).add(cpus)

    def forget(self, living: set[int]) -> None:
        """Drop what is known of threads and processes that have ended: their ids may come back as others'."""
        for table in (self._original, self._bound, self._pid_of):
            for tid in table.keys() - living:
                del table[tid]
        self._foreign &= living
        processes = set(self._pid_of.values())
        for pid in self._process_cpus.keys() - processes:
            del self._process_cpus[pid]
            self._given_in.pop(pid, None)

    def release(self, tid: int) -> bool:
        """Give a thread its first mask back, if we bound it and nobody else did since; whether it has it."""
        bound, original = self._bound.get(tid), self._original.get(tid)
        if bound is not None and original is not None and self.system.allowed_cpus(tid) == bound:
            with suppress(OSError):
                self.system.bind(tid, original)
                del self._bound[tid]
                return True
        return False

    def restore(self) -> int:
        """Give every thread that we bound, and nobody else since, its first mask; returns how many."""
        restored = sum([self.release(tid) for tid in [*self._bound]])
        self._bound.clear()
        return restored
