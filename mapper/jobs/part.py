"""The part of a rank in a job: all that a plan asks of it, taken out of what was recorded.

Ranks that were recorded together meet each other's threads: a part lists these after its own.
"""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import BY_PAIRS, PageCounts
from numaplan.machine import Machine

from ..threads.problem import Floats, Nodes
from ..workload.one_job import Membership
from ..workload.workload import Workload

# (n, T) of own threads (rows) with all: communication, lines, and how far they run together; and of the lines
# those that are found in a shared cache, where that is known.
NEEDED = ("comm", "lines", "together")
KEPT = "kept"
MATRICES = (*NEEDED, KEPT, *BY_PAIRS)
PAGE_ROWS = ("region", "page", "thread", "accesses", "writes", "toucher", "before")
COUNTED = ("accesses", "writes", "before", "missed", "missed_before")  # whole numbers or not
PAGE_EXTRAS = ("phase", "first_ns", "missed", "missed_before")  # None where they are not known


class Messages(msgspec.Struct, frozen=True):
    """What a rank's threads exchange with other ranks; equally long arrays.

    peer: the other rank; kind: as in a trace; thread: of the part, -1: not known.
    """

    peer: NDArray[np.int64]
    kind: Sequence[str]
    bytes: NDArray[np.int64]
    count: NDArray[np.int64]
    thread: NDArray[np.int64]


class PartFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of a part in words and numbers.

    recording: digest of the trace; own: how many of its threads are the rank's; ranks: size of the job, 0:
    not known; messages: whether the recording would have seen them; period, exact, teams: of its pages;
    use_exact, cache_sizes, cache_own: of what its threads use; use_near: the share of all lines that is not
    kept, of parts of earlier versions, which lack that matrix; lasted_s: seconds of the run, -1: not known;
    page_columns, matrices: those that are known, whole: columns of pages that count in whole numbers.
    """

    rank: int
    own: int
    recording: str
    ranks: int = 0
    host: str = ""
    job: str = ""
    argv: tuple[str, ...] = ()
    build_id: str = ""
    executable: str = ""
    notes: tuple[str, ...] = ()
    not_balanced: tuple[str, ...] = ()
    unordered: bool = False
    messages: bool = False
    pages: bool = False
    period: int = 1
    exact: bool = False
    teams: tuple[int, ...] | None = None
    use_exact: bool = False
    use_near: float = 1.0
    lasted_s: float = -1.0
    cache_sizes: tuple[int, ...] = ()
    cache_own: int = 0
    whole: tuple[str, ...] = ()
    page_columns: tuple[str, ...] = ()
    matrices: tuple[str, ...] = ()

    @property
    def membership(self) -> Membership:
        """What it says of its job."""
        return Membership(f"rank {self.rank}", (f"r{self.rank}",), self.ranks, self.job)


class Part(msgspec.Struct, frozen=True):
    """threads: (process, path) of own ones, then of others; lives, names, keeps, loads, accesses, beyond,
    seen_on, missed (n, sizes), domain: of own ones, as in Workload; matrices: by name, what is known; phases:
    (P, n) loads, with their rates and ends in ns; pages: with threads as they are numbered here."""

    facts: PartFacts
    machine: Machine
    threads: Sequence[tuple[str, str]]
    loads: Floats
    accesses: Floats
    lives: Sequence[tuple[int, int]]
    names: Sequence[str]
    keeps: Sequence[bool]
    seen_on: Sequence[int]
    matrices: dict[str, Floats]
    phases: Floats
    phase_rates: Floats
    phase_ends: NDArray[np.int64]
    beyond: Floats | None = None
    missed: Floats | None = None
    domain: Nodes | None = None
    pages: PageCounts | None = None
    messages: Messages | None = None


def rank_of_process(process: str) -> int | None:
    """The rank that a process is, or that started it: 3 of `r3` and `r3.1`; None of others."""
    word = process.partition(".")[0]
    number = word[1:]
    return int(number) if word[:1] == "r" and number.isascii() and number.isdecimal() else None


def split(workload: Workload, phase_ends: Sequence[int], facts: dict[str, Any]) -> list[Part]:
    """The parts of all ranks in a workload of one trace, in their order.

    facts: those of PartFacts that the workload does not tell.
    """
    ranks = [rank_of_process(process) for process, _ in workload.threads]
    return [
        _part(workload, np.array([one == rank for one in ranks]), rank, phase_ends, facts)
        for rank in sorted({rank for rank in ranks if rank is not None})
    ]


def _part(
    workload: Workload, mine: NDArray[np.bool_], rank: int, phase_ends: Sequence[int], facts: dict[str, Any]
) -> Part:
    own, use, pages = np.flatnonzero(mine), workload.use, workload.pages
    assert isinstance(workload.comm, np.ndarray) and use is not None
    wholes: dict[str, Floats | None] = {"comm": workload.comm}
    wholes |= {name: getattr(use, name) for name in ("lines", "together", KEPT)}
    if pages is not None:
        wholes |= {name: getattr(pages, name) for name in BY_PAIRS}
    rows = {name: matrix[own] for name, matrix in wholes.items() if matrix is not None}
    taken = None if pages is None else np.flatnonzero(mine[pages.thread] & (pages.thread >= 0))
    met = np.zeros(len(mine), bool)
    for matrix in rows.values():
        met |= (matrix != 0).any(axis=0)
    if pages is not None and taken is not None and pages.toucher is not None:
        met[pages.toucher[taken][pages.toucher[taken] >= 0]] = True
    order = np.concatenate([own, np.flatnonzero(met & ~mine)])
    number = np.full(len(mine) + 1, -1)  # the last is that of -1
    number[order] = np.arange(len(order))
    caches = use.caches
    return Part(
        facts=PartFacts(
            rank=rank,
            own=len(own),
            argv=workload.argv,
            build_id=workload.build_id,
            executable=workload.executable,
            notes=workload.notes,
            not_balanced=workload.not_balanced,
            unordered=workload.unordered,
            use_exact=use.exact,
            lasted_s=workload.lasted_s if math.isfinite(workload.lasted_s) else -1.0,
            cache_sizes=() if caches is None else caches.sizes,
            cache_own=0 if caches is None else caches.own,
            matrices=tuple(rows),
            **_page_facts(pages),
            **facts,
        ),
        machine=_machine(workload),
        threads=[workload.threads[thread] for thread in order],
        loads=workload.loads[own],
        accesses=use.accesses[own],
        lives=[workload.lives[thread] for thread in own],
        names=[workload.names[thread] for thread in own],
        keeps=[workload.keeps[thread] for thread in own],
        seen_on=[workload.seen_on[thread] for thread in own] if workload.seen_on else [],
        matrices={name: matrix[:, order] for name, matrix in rows.items()},
        phases=np.zeros((0, len(own))) if workload.phases is None else workload.phases[:, own],
        phase_rates=np.zeros(0) if workload.phase_rates is None else workload.phase_rates,
        phase_ends=np.array(phase_ends, np.int64),
        beyond=None if use.beyond is None else use.beyond[own],
        missed=None if caches is None else caches.missed[own],
        domain=None if caches is None else caches.domain[own],
        pages=None if pages is None or taken is None else _pages(pages, taken, number, rank),
    )


def _machine(workload: Workload) -> Machine:
    assert workload.machine is not None  # of a trace
    return workload.machine


def _page_facts(pages: PageCounts | None) -> dict[str, Any]:
    if pages is None:
        return {}
    columns = {name: getattr(pages, name) for name in (*PAGE_ROWS, *PAGE_EXTRAS)}
    return {
        "pages": True,
        "period": pages.period,
        "exact": pages.exact,
        "teams": None if pages.teams is None else tuple(pages.teams.tolist()),
        "page_columns": tuple(name for name, column in columns.items() if column is not None),
        "whole": tuple(
            name for name, column in columns.items() if column is not None and column.dtype.kind == "i"
        ),
    }


def _pages(pages: PageCounts, rows: Nodes, number: Nodes, rank: int) -> PageCounts:
    """Those rows, with the regions that they are of and the rank's own; threads as the part numbers them."""
    listed = np.array([rank_of_process(key.process) == rank for key in pages.regions], bool)
    listed[pages.region[rows]] = True
    seen, region = np.flatnonzero(listed), (np.cumsum(listed) - 1)[pages.region[rows]]
    columns = {name: getattr(pages, name) for name in (*PAGE_ROWS, *PAGE_EXTRAS)}
    kept: dict[str, Any] = {
        name: None if column is None else column[rows] for name, column in columns.items()
    }
    if pages.toucher is not None:
        kept["toucher"] = number[kept["toucher"]]
    kept |= {"region": region, "thread": number[pages.thread[rows]]}
    regions = [pages.regions[one] for one in seen.tolist()]
    return PageCounts(
        **kept,
        regions=regions,
        teams=pages.teams,
        period=pages.period,
        lives=None if pages.lives is None else pages.lives[seen],
        exact=pages.exact,
        sources={key: pages.sources[key] for key in regions if key in pages.sources},
    )
