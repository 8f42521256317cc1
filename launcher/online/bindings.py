"""Which threads may be moved, what they were bound to before, and binding them.

A thread that others bound (by taskset, by itself, by another tool) is left alone, also when that happens
later: the mask that it has is then not the one that we gave it.
"""

from contextlib import suppress
from dataclasses import dataclass, field

from .system import Cpus, LocalSystem, System


@dataclass
class Bindings:
    """Masks by tid. planned: masks that a plan gave, which are ours to change."""

    planned: frozenset[Cpus] = frozenset()
    system: System = field(default_factory=LocalSystem)
    _original: dict[int, Cpus] = field(default_factory=dict)
    _bound: dict[int, Cpus] = field(default_factory=dict)
    _masks_given: set[Cpus] = field(default_factory=set)  # at any time: children of threads let go have them
    _foreign: set[int] = field(default_factory=set)
    _process_cpus: dict[int, Cpus] = field(
        default_factory=dict
    )  # by pid, what its threads had in all at first

    def movable(self, pid: int, tids: list[int]) -> dict[int, bool]:
        """Whether each thread of a process may be moved."""
        masks = {tid: mask for tid in tids if (mask := self.system.allowed_cpus(tid)) is not None}
        for tid, mask in masks.items():
            self._original.setdefault(tid, mask)
        if pid not in self._process_cpus and masks:
            self._process_cpus[pid] = frozenset().union(*masks.values())
        return {tid: tid in masks and self._movable(pid, tid, masks[tid]) for tid in tids}

    def _movable(self, pid: int, tid: int, mask: Cpus) -> bool:
        bound = self._bound.get(tid)
        if bound is not None:
            if mask != bound:
                self._foreign.add(tid)
            return tid not in self._foreign
        # A thread inherits its creator's mask: one that we gave is ours in the child, too.
        ours = mask in self.planned or mask in self._masks_given
        return ours or mask >= self._process_cpus.get(pid, mask)

    @property
    def foreign(self) -> frozenset[int]:
        """Threads that somebody else bound after us."""
        return frozenset(self._foreign)

    def usable_cpus(self, pid: int, cpus: Cpus) -> Cpus:
        """Those of the cpus on which the process's threads may be."""
        return cpus & self._process_cpus.get(pid, cpus)

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
        self._masks_given.add(frozenset(cpus))

    def forget(self, living: set[int]) -> None:
        """Drop what is known of threads that have ended: their ids may come back as others'."""
        for table in (self._original, self._bound):
            for tid in table.keys() - living:
                del table[tid]
        self._foreign &= living

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
