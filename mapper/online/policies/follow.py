"""Memory that follows its threads: pages around sampled remote accesses ([DINO], 4), and ping-pong.

Sequential-forward-backward: K / 2 pages before and after each remotely accessed page move along. A chunk is K
pages of the address space; one that keeps going back to the node it came from is ping-ponged, and left alone.
"""

from dataclasses import dataclass, field

import numpy as np

from ..actions import MovePages
from ..observation import Flags, Floats, Ints, Observation, sums_by_cell
from .page_sets import move_actions, page_keys

SMALL_PAGE = 4096  # what K counts
MAX_PAGES = 1 << 22  # a decision names at most so many: 16 GiB of small pages


@dataclass(frozen=True)
class Travels:
    """Where memory went, by chunk (pid, number). last: from and to, node rows; returns: times it went
    back.
    """

    last: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    returns: dict[tuple[int, int], int] = field(default_factory=dict)


def remote_pages(observation: Observation) -> tuple[Ints, Ints, Floats]:
    """Rows of pages accessed from another node than they are on, the node row to go to, and those accesses.

    Touches count for where their thread is now; of several nodes the one with most accesses has the page.
    """
    touches, pages, threads = observation.touches, observation.pages, observation.threads
    where = threads.node[touches.thread]
    wanted = pages.node[touches.page] >= 0
    shape = pages.count, observation.machine.nodes
    counts = sums_by_cell(touches.page[wanted], where[wanted], touches.accesses[wanted], shape)
    user = np.argmax(counts, axis=1)
    rows = np.flatnonzero((counts.sum(axis=1) > 0) & (user != pages.node))
    return rows, user[rows], counts[rows, user[rows]]


def surrounding(
    observation: Observation, rows: Ints, nodes: Ints, weight: Floats, k: int
) -> tuple[Ints, Ints]:
    """Keys, ascending, and destinations of the pages with K/2 on each side: each goes with the nearest, of
    two equally near with the more accessed.

    k counts small pages whatever the size of these is.
    """
    pages = observation.pages
    half = k * SMALL_PAGE // 2 // pages.bytes_per_page
    order = np.argsort(-weight, kind="stable")[: max(1, MAX_PAGES // (2 * half + 1))]
    number = pages.number[rows[order]]
    keys = page_keys(pages.process[rows[order]], number)
    rank = np.argsort(keys)  # of places in the address space, how much accessed
    keys, number, goal = keys[rank], number[rank], nodes[order][rank]
    gap = np.diff(keys)
    between, tie = (gap - 1) // 2, gap % 2 == 0
    after = np.minimum(half, np.append(between + (tie & (rank[:-1] < rank[1:])), half))
    before = np.minimum(half, np.append(half, between + (tie & (rank[1:] < rank[:-1]))))
    before = np.minimum(before, number)
    length = before + after + 1
    starts = np.repeat(keys - before - np.cumsum(length) + length, length)
    return starts + np.arange(len(starts)), np.repeat(goal, length)


def follow(
    observation: Observation, rows: Ints, nodes: Ints, weight: Floats, k: int
) -> tuple[MovePages, ...]:
    """The migrations of remotely accessed pages and their surroundings."""
    if not len(rows):
        return ()
    keys, goal = surrounding(observation, rows, nodes, weight, k)
    return move_actions(observation, keys, goal, "accessed from another node")


def may_return(
    observation: Observation, rows: Ints, nodes: Ints, k: int, travels: Travels, limit: int
) -> tuple[Flags, Travels]:
    """(n,) which of these migrations may be made, and the travels with those.

    A chunk goes back `limit` - 1 times; then it has been ping-ponged, and stays where it is.
    """
    pages = observation.pages
    chunk_pages = max(1, k * SMALL_PAGE // pages.bytes_per_page)
    pids = observation.processes.pid[pages.process[rows]].tolist()
    chunks = list(zip(pids, (pages.number[rows] // chunk_pages).tolist(), strict=True))
    alive = set(observation.processes.pid.tolist())
    last = {chunk: way for chunk, way in travels.last.items() if chunk[0] in alive}
    returns = {chunk: count for chunk, count in travels.returns.items() if chunk[0] in alive}
    ways = dict(zip(chunks, zip(pages.node[rows].tolist(), nodes.tolist(), strict=True), strict=True))
    for chunk, (origin, goal) in ways.items():
        if last.get(chunk) == (goal, origin):
            returns[chunk] = returns.get(chunk, 0) + 1
        if returns.get(chunk, 0) < limit:
            last[chunk] = (origin, goal)
    free: Flags = np.array([returns.get(chunk, 0) < limit for chunk in chunks], dtype=bool)
    return free, Travels(last, returns)
