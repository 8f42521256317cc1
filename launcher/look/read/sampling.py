"""Where sampled accesses go, while a look lasts, if there is a sampler: the processor's, or the lab's."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from numaplan.common import MachineLacksError
from numaplan.machine import Machine

from .model import Sampled

if TYPE_CHECKING:
    from numaplan.mapper import Floats, Ints
    from numaplan.profiler import LiveSamples, Sampler

BACKENDS = ("lab", "pebs", "ibs")  # page faults would show first touches only
PERIOD = 100_003  # accesses a sample: thousands of samples in two seconds, and little disturbance
LEAST_SECONDS = 0.5  # of a look that is worth starting one
_DOMINATED = 0.9  # of the accesses to a block, by one thread or the cpus of one node
_TWICE = 0.1  # of the accesses, to pages that were sampled twice or more: else larger blocks are taken
_PAGE_BITS, _LARGE_BITS = 12, 9

Taken = Callable[[], Mapping[int, Sampled]]
PageNodes = Callable[[int, "Ints"], "Ints"]


@contextmanager
def sampling(machine: Machine, pids: Sequence[int], seconds: float) -> Iterator[Taken]:
    """Sample these processes inside; yields what says what was seen, of each process. Nothing without one."""
    sampler = _start(pids) if len(machine.nodes) > 1 and seconds >= LEAST_SECONDS else None
    if sampler is None:
        yield dict
        return
    from ...process.page_moves import page_nodes

    def take() -> Mapping[int, Sampled]:
        with suppress(MachineLacksError):
            return shares(sampler.take(), machine.node_of_cpu, frozenset(pids), page_nodes)
        return {}

    try:
        yield take
    finally:
        sampler.close()


def _start(pids: Sequence[int]) -> "Sampler | None":
    from numaplan.profiler import live_events, start_sampler

    for backend in BACKENDS:
        with suppress(MachineLacksError):
            return start_sampler(live_events(backend, PERIOD), pids)
    return None


def shares(
    samples: "LiveSamples", node_of_cpu: Mapping[int, int], pids: frozenset[int], page_nodes: PageNodes
) -> dict[int, Sampled]:
    """Of each process what its samples tell; those that caches answered are left out where that is known.

    page_nodes: the nodes of page numbers of a process, negative where it cannot be told.
    """
    import numpy as np

    table = np.full(max(node_of_cpu) + 2, -1, dtype=np.int64)
    table[list(node_of_cpu)] = list(node_of_cpu.values())
    page = (samples.addr >> np.uint64(_PAGE_BITS)).astype(np.int64)
    node = table[np.clip(samples.cpu, -1, len(table) - 1)]
    used = samples.missed if samples.missed.any() else np.ones(len(page), dtype=np.bool_)
    found = {}
    for pid in np.unique(samples.pid[used]).tolist():
        if pid not in pids:
            continue
        rows = np.flatnonzero(used & (samples.pid == pid) & (node >= 0))
        pages, which = np.unique(page[rows], return_inverse=True)
        with suppress(OSError):
            home = page_nodes(pid, pages)[which]
            known = home >= 0
            weight = samples.count[rows] * known
            if total := float(weight.sum()):
                away = float(weight[home != node[rows]].sum()) / total
                own = _own(page[rows], node[rows], samples.tid[rows], weight)
                found[pid] = Sampled(int(known.sum()), away, own)
    return found


def _own(page: "Ints", node: "Ints", tid: "Ints", weight: "Floats") -> float:
    """The share of accesses to blocks that one thread, or one node's cpus, use almost alone."""
    import numpy as np

    def by(block: "Ints") -> tuple[float, float]:
        blocks, which, counts = np.unique(block, return_inverse=True, return_counts=True)
        twice = counts[which] > 1
        of_block = np.bincount(which, weight, len(blocks))
        alone = np.zeros(len(blocks), dtype=np.bool_)
        for user in (node, tid):
            pairs, pair = np.unique(np.stack([which, user]), axis=1, return_inverse=True)
            most = np.zeros(len(blocks))
            np.maximum.at(most, pairs[0], np.bincount(pair.ravel(), weight, pairs.shape[1]))
            alone |= most >= _DOMINATED * of_block
        seen = float(weight[twice].sum())
        return seen / max(1e-9, float(weight.sum())), float((weight * alone[which])[twice].sum()) / max(
            1e-9, seen
        )

    seen, own = by(page)
    return own if seen >= _TWICE else by(page >> _LARGE_BITS)[1]
