"""Who keeps to those with whom it exchanges lines has a role, where nobody comes back to memory."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from numaplan.analyzer import Roles, TraceSamples, thread_roles
from numaplan.analyzer.communication.transfers import Transfers
from numaplan.analyzer.partners import pairs_kept, partners_kept
from numaplan.analyzer.roles import KEPT, TEAM
from numaplan.profiler import Trace
from tests.support.traces import write_trace

WORKERS = 8  # threads 1 to 8; 0 is main
STRETCHES = 16
RNG = np.random.default_rng(5)
EVERY = [(one, other) for one in range(1, WORKERS + 1) for other in range(1, WORKERS + 1) if one != other]

Row = tuple[int, int, int, int]


def pairs(stretch: int) -> list[Row]:
    return [(stretch, one, one + 4, 90) for one in range(1, 5)]


def ring(stretch: int) -> list[Row]:
    return [(stretch, one, one % WORKERS + 1, 90) for one in range(1, WORKERS + 1)]


def star(stretch: int) -> list[Row]:
    return [(stretch, 0, one, 20 + int(RNG.integers(70))) for one in range(1, WORKERS + 1)]


def queue(stretch: int) -> list[Row]:
    """Who comes next takes what any other had before."""
    who = RNG.integers(1, WORKERS + 1, (2, 300))
    return [(stretch, one, other, 1) for one, other in who.T.tolist() if one != other]


def stealing(stretch: int) -> list[Row]:
    """Each works with another one for a quarter of the run."""
    shift = 1 + stretch * 4 // STRETCHES
    return [(stretch, one, (one - 1 + shift) % WORKERS + 1, 90) for one in range(1, WORKERS + 1)]


def tasks(stretch: int) -> list[Row]:
    """Each takes what another one has made, whoever that is."""
    return [(stretch, one, 1 + int(RNG.integers(WORKERS)), 90) for one in range(1, WORKERS + 1)]


def mostly_anybody(stretch: int) -> list[Row]:
    """Of what is exchanged a tenth is by the ring."""
    return [(stretch, one, other, 90 if other == one % WORKERS + 1 else 80) for one, other in EVERY]


def kept(who: object, threads: int = WORKERS + 1) -> list[bool]:
    rows = np.array([row for stretch in range(STRETCHES) for row in who(stretch)], np.int64)  # type: ignore[operator]
    transfers = Transfers(*rows.T, process=np.zeros(threads, np.uint64))
    return (partners_kept(transfers, np.arange(threads)) >= KEPT).tolist()


@pytest.mark.parametrize("who", [pairs, ring])
def test_who_has_partners_of_its_own_keeps_to_them(who: object) -> None:
    assert kept(who)[1:] == [True] * WORKERS


@pytest.mark.parametrize("who", [star, queue, stealing])
def test_who_exchanges_with_anybody_or_with_one_for_all_does_not(who: object) -> None:
    assert kept(who)[1:] == [False] * WORKERS


def pairs_of(who: object, group: Sequence[int] = range(1, WORKERS + 1)) -> float:
    rows = np.array([row for stretch in range(STRETCHES) for row in who(stretch)], np.int64)  # type: ignore[operator]
    transfers = Transfers(*rows.T, process=np.zeros(WORKERS + 1, np.uint64))
    return pairs_kept(transfers, np.arange(WORKERS + 1), np.array(group))


@pytest.mark.parametrize("who", [pairs, ring, stealing, mostly_anybody])
def test_pairs_that_exchange_more_than_others_do_so_again(who: object) -> None:
    """Also if they do in one phase only, or beside much that all exchange with all."""
    assert pairs_of(who) > 0.7


@pytest.mark.parametrize("who", [queue, tasks])
def test_pairs_of_threads_that_take_what_comes_are_chance(who: object) -> None:
    assert pairs_of(who) < 0.3


def test_of_few_threads_or_transfers_pairs_are_not_called_chance() -> None:
    assert pairs_of(tasks, range(1, 5)) == 1.0  # what pairs do is what their threads do
    assert pairs_of(star) == 1.0  # nothing among those of the group
    assert pairs_of(lambda stretch: [(stretch, 1, 2 + stretch % 7, 1)]) == 1.0


def test_who_exchanges_next_to_nothing_says_nothing() -> None:
    rows = np.array([(0, 1, 2, 40), (1, 1, 2, 40)])
    transfers = Transfers(*rows.T, process=np.zeros(3, np.uint64))
    assert partners_kept(transfers, np.arange(3)).tolist() == [-1.0] * 3


def test_threads_that_follow_one_another_are_one() -> None:
    """Of four seats of workers, the second generation of threads pairs as the first did, or otherwise."""
    lane = np.array([0, 1, 2, 3, 4, 1, 2, 3, 4])
    for second, same in ((((5, 6), (7, 8)), True), (((5, 7), (6, 8)), False)):
        rows = [
            (stretch, one, other, 90)
            for stretch in range(STRETCHES)
            for one, other in (second if stretch > 7 else ((1, 2), (3, 4)))
        ]
        transfers = Transfers(*np.array(rows).T, process=np.zeros(9, np.uint64))
        assert ((partners_kept(transfers, lane)[1:] >= KEPT) == same).all()


@pytest.mark.parametrize("who", [pairs, queue])
def test_small_blocks_that_share_pages_do_not_make_a_pool_of_partners(who: object, tmp_path: Path) -> None:
    """All touch all pages of the small blocks alike."""
    number = np.arange(8000)
    start = 1 << 24
    samples = {
        "time_ns": number * 10 + 20,
        "thread": number % (WORKERS + 1),
        "addr": start + number * 64 % (1 << 16),
        "is_write": number % 2,
        "region": 0,
    }
    rows = [row for stretch in range(STRETCHES) for row in who(stretch)]  # type: ignore[operator]
    transfers = [(10 + 5000 * s, 5010 + 5000 * s, one, other, 0, count) for s, one, other, count in rows]
    threads = [
        (i, "p0", f"0.{i}" if i else "0", i + 1, 1, "x", 10 if i else 0, -1) for i in range(WORKERS + 1)
    ]
    regions = [(0, "p0", "small", "small heap blocks", "", start, 1 << 16, 0, 1, 0, -1)]
    meta = {"period": 1, "transfers": "all"}
    write_trace(tmp_path / "t.db", samples, threads, regions, meta, transfers=transfers)
    with Trace.open(tmp_path / "t.db") as trace:
        found = thread_roles(trace, TraceSamples(trace)).keeps.tolist()
    assert found[1:] == [who is pairs] * WORKERS


def roles_in_blocks(path: Path, who: object, owner: NDArray[np.int64], sweeps: int, pages: int) -> Roles:
    """Of threads that exchange lines like `who`; owner: who sweeps over each page of a block of main's."""
    page_bytes, start = 4096, 1 << 24
    sweep, page = (part.ravel() for part in np.mgrid[:sweeps, :pages])
    samples = {
        "time_ns": (sweep * pages + page) * 12 + 20,
        "thread": owner,
        "addr": start + page * page_bytes,
        "is_write": True,
        "region": 0,
    }
    rows = [row for stretch in range(STRETCHES) for row in who(stretch)]  # type: ignore[operator]
    transfers = [(10 + 5000 * s, 5010 + 5000 * s, one, other, 0, count) for s, one, other, count in rows]
    threads = [
        (i, "p0", f"0.{i}" if i else "0", i + 1, 1, "x", 10 if i else 0, -1) for i in range(WORKERS + 1)
    ]
    regions = [(0, "p0", "heap", "app+0x10", "", start, pages * page_bytes, 0, 1, 0, -1)]
    write_trace(path, samples, threads, regions, {"period": 1, "transfers": "all"}, transfers=transfers)
    with Trace.open(path) as trace:
        return thread_roles(trace, TraceSamples(trace))


@pytest.mark.parametrize(("who", "keeps"), [(pairs, True), (queue, False)])
def test_partners_that_visit_the_same_pages_are_no_pool(who: object, keeps: bool, tmp_path: Path) -> None:
    """Either of two threads takes each page of a part, whenever both go through it once more."""
    sweeps, pages = 16, 400
    page = np.tile(np.arange(pages), sweeps)
    owner = 1 + page * 4 // pages + 4 * RNG.integers(2, size=len(page))
    found = roles_in_blocks(tmp_path / "t.db", who, owner, sweeps, pages)
    assert found.returns is not None and set(found.returns[1:].tolist()) == {0.0}
    assert found.keeps[1:].tolist() == [keeps] * WORKERS


@pytest.mark.parametrize(("who", "keeps"), [(pairs, True), (queue, False)])
def test_partners_that_hand_on_what_is_anybodys_are_no_pool(who: object, keeps: bool, tmp_path: Path) -> None:
    """Which thread has a block is chance, as it is allocated and freed for each piece of work; to whom it
    goes on is not."""
    sweeps, pages = 16, 400
    owner = RNG.integers(1, WORKERS + 1, sweeps * pages)
    found = roles_in_blocks(tmp_path / "t.db", who, owner, sweeps, pages)
    assert found.returns is not None and set(found.returns[1:].tolist()) == {0.0}
    assert float(found.own[1:].max()) < TEAM
    assert found.keeps[1:].tolist() == [keeps] * WORKERS


def test_of_few_stretches_of_time_partners_are_not_known() -> None:
    rows = np.array([(stretch, one, other, 90) for stretch in range(2) for _, one, other, _ in pairs(0)])
    transfers = Transfers(*rows.T, process=np.zeros(WORKERS + 1, np.uint64))
    assert set(partners_kept(transfers, np.arange(WORKERS + 1)).tolist()) == {-1.0}
