"""DINO: spread classes of memory intensity over domains with few migrations ([DINO], 3.3 and 4).

When neither the threads nor any class changed, the layout is kept: the layout would be the same, and
the pass that gathers processes could only go in circles.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ..actions import Action, Decision
from ..observation import Floats, Ints, Observation
from .follow import Travels, follow, may_return, remote_pages
from .intensity import miss_rates, moved, placed_threads, thread_moves
from .layout import alternating_layout, domain_slots, gather_processes, keep_in_place
from .parameters import parameter, period

TURTLE, DEVIL, SUPER_DEVIL = 1, 2, 3
NAMES = {TURTLE: "turtle", DEVIL: "devil", SUPER_DEVIL: "super-devil"}


class Thread(NamedTuple):
    """What DINO remembers of a thread: its class, the last intervals' classes, its cpu row."""

    kind: int
    recent: tuple[int, ...]
    cpu: int


class Memory(NamedTuple):
    """DINO's state: by tid, and where memory went."""

    threads: dict[int, Thread]
    travels: Travels


@dataclass(frozen=True)
class Dino:
    """DINO; thresholds are misses a thousand instructions."""

    devil: float = parameter(2.0, "misses/1000 instructions from which a thread is a devil")
    super_devil: float = parameter(100.0, "misses/1000 instructions above which it is a super-devil")
    stay: int = parameter(7, "of the last intervals with a new class before it counts", low=1)
    window: int = parameter(10, "intervals remembered", low=1, high=1000)
    k: int = parameter(4096, "pages moved along around a sampled one", paper="K", high=1 << 22)
    pingpong: int = parameter(2, "returns of memory to where it came from before it is left alone", low=1)
    period_s: float = period(1.0)
    needs: ClassVar[frozenset[str]] = frozenset({"misses", "counters", "accesses"})
    balances: ClassVar[bool] = False
    trades_distance: ClassVar[bool] = False

    def decide(self, observation: Observation, state: Memory | None) -> Decision:
        """Thread moves when classes changed, and pages that follow."""
        before = state or Memory({}, Travels())
        known = before.threads
        rows = placed_threads(observation, known)
        tids = observation.threads.tid[rows].tolist()
        rates = self.classes(miss_rates(observation)[rows])
        recent = [self._recent(known.get(tid), kind) for tid, kind in zip(tids, rates, strict=True)]
        classes = [self._settle(known.get(tid), past) for tid, past in zip(tids, recent, strict=True)]
        kinds = np.array(classes, dtype=np.int64)
        now = observation.threads.cpu[rows].tolist()
        old = np.array(
            [known[tid].cpu if tid in known else cpu for tid, cpu in zip(tids, now, strict=True)],
            dtype=np.int64,
        )
        same = known.keys() == set(tids) and classes == [known[tid].kind for tid in tids]
        cpus = old if same or not tids else place(observation, rows, kinds, old)
        reasons = [NAMES[kind] for kind in kinds.tolist()]
        actions = thread_moves(observation, rows, cpus, reasons, frozenset(known))
        pages, travels = self._memory(moved(observation, rows, cpus), before.travels)
        threads = {
            tid: Thread(kind, past, cpu)
            for tid, kind, past, cpu in zip(tids, kinds.tolist(), recent, cpus.tolist(), strict=True)
        }
        return Decision(actions + pages, Memory(threads, travels))

    def classes(self, rates: Floats) -> list[int]:
        """Class of each miss rate: turtle below `devil`, super-devil above `super_devil`."""
        kinds: Ints = TURTLE + (rates >= self.devil) + (rates > self.super_devil)
        return [int(kind) for kind in kinds]

    def _recent(self, thread: Thread | None, kind: int) -> tuple[int, ...]:
        past = thread.recent if thread else ()
        return (*past, kind)[-self.window :]

    def _settle(self, thread: Thread | None, recent: tuple[int, ...]) -> int:
        """The class: a new one only after `stay` of the last `window` intervals."""
        newest = recent[-1]
        if thread is None or newest == thread.kind or recent.count(newest) >= min(self.stay, self.window):
            return newest
        return thread.kind

    def _memory(self, observation: Observation, travels: Travels) -> tuple[tuple[Action, ...], Travels]:
        """Pages accessed remotely follow, but for memory that was ping-ponged."""
        rows, nodes, weight = remote_pages(observation)
        free, travels = may_return(observation, rows, nodes, self.k, travels, self.pingpong)
        return follow(observation, rows[free], nodes[free], weight[free], self.k), travels


def place(observation: Observation, rows: Ints, kinds: Ints, old: Ints) -> Ints:
    """(n,) cpu rows for the threads `rows` with these classes that were on cpus `old`."""
    machine = observation.machine
    intensive_first = np.argsort(-kinds, kind="stable").tolist()
    layout = alternating_layout(intensive_first, domain_slots(machine, len(rows)))
    slots = [(cpu, int(kinds[item])) for item, cpu in layout]
    kept = keep_in_place(old, kinds, intensive_first, slots)
    return gather_processes(kept, kinds, observation.threads.process[rows], machine.cpu_node)
