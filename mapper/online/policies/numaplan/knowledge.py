"""Which thread uses which page: samples of many intervals, older ones counting less."""

from dataclasses import dataclass

import numpy as np

from ...arithmetic import pair_products
from ...observation import Floats, Ints, Observation, sums_by_cell
from ..page_sets import find_rows, page_keys, split_keys

_FORGET = 0.02  # of the mean weight of an entry


@dataclass(frozen=True)
class Uses:
    """(Z,) entries by page, then tid: page (`page_keys` of pid and number), tid, accesses a second."""

    page: Ints
    tid: Ints
    weight: Floats


_EMPTY = np.empty(0, dtype=np.int64)
NONE = Uses(_EMPTY, _EMPTY, np.empty(0))


def learn(before: Uses, observation: Observation, decay: float, limit: int) -> Uses:
    """What was known, times `decay`, and this interval's accesses a second, times 1 - decay.

    Entries of ended threads are dropped, then the lightest beyond `limit`.
    """
    touches, pages = observation.touches, observation.pages
    kept = np.isin(before.tid, observation.threads.tid)
    keys = page_keys(observation.processes.pid[pages.process], pages.number)
    page = np.concatenate([before.page[kept], keys[touches.page]])
    tid = np.concatenate([before.tid[kept], observation.threads.tid[touches.thread]])
    rate = touches.accesses / observation.interval_s
    weight = np.concatenate([before.weight[kept] * decay, rate * (1.0 - decay)])
    if not len(weight):
        return NONE
    order = np.lexsort((tid, page))
    page, tid, weight = page[order], tid[order], weight[order]
    starts = np.flatnonzero(np.append(True, (np.diff(tid) != 0) | (np.diff(page) != 0)))
    sums = np.add.reduceat(weight, starts)
    heavy = sums > _FORGET * sums.mean()
    if int(heavy.sum()) > limit:
        heavy &= sums >= np.partition(sums, len(sums) - limit)[len(sums) - limit]
    starts = starts[heavy]
    return Uses(page[starts], tid[starts], sums[heavy])


@dataclass(frozen=True)
class Sharing:
    """The uses in rows of one observation: pages (M,) by key, those of a process together and ascending, and
    node row (-1 unknown), entries (Z,) of page row, thread row and accesses a second."""

    keys: Ints
    node: Ints
    page: Ints
    thread: Ints
    weight: Floats

    def by_node(self, thread_node: Ints, nodes: int) -> Floats:
        """(M, K) accesses a second to each page by the node they come from, threads being where given."""
        return sums_by_cell(self.page, thread_node[self.thread], self.weight, (len(self.keys), nodes))

    def by_memory(self, threads: int, nodes: int, page_node: Ints) -> Floats:
        """(T, K) accesses a second of each thread by the node of the page, (M,), where that is known."""
        node = page_node[self.page]
        known = node >= 0
        return sums_by_cell(self.thread[known], node[known], self.weight[known], (threads, nodes))

    def communication(self, threads: int) -> Floats:
        """(T, T) symmetric: on each page a pair has the product of its accesses over all accesses there."""
        total = np.bincount(self.page, self.weight, minlength=len(self.keys))
        scaled = self.weight / np.sqrt(np.maximum(total[self.page], 1e-300))
        matrix = pair_products(self.page, self.thread, scaled, threads)
        np.fill_diagonal(matrix, 0.0)
        return matrix


def in_rows(uses: Uses, observation: Observation) -> Sharing:
    """The uses by this observation's rows."""
    processes, threads = observation.processes, observation.threads
    by_pid, by_tid = np.argsort(processes.pid), np.argsort(threads.tid)
    pid, number = split_keys(uses.page)
    process = find_rows(processes.pid[by_pid], pid)
    thread = find_rows(threads.tid[by_tid], uses.tid)
    real = (process >= 0) & (thread >= 0)
    entries = page_keys(by_pid[process[real]], number[real])
    first = np.append(True, np.diff(entries) != 0)[: len(entries)]
    keys, page = entries[first], np.cumsum(first) - 1
    rows = find_rows(page_keys(observation.pages.process, observation.pages.number), keys)
    node = np.full(len(keys), -1, dtype=np.int64)
    node[rows >= 0] = observation.pages.node[rows[rows >= 0]]
    return Sharing(keys, node, page, by_tid[thread[real]], uses.weight[real])
