"""Teams that come one after another, carried over with all their threads."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.mapper import PlanOptions, Workload, make_plan
from numaplan.mapper.scaling.rounds import MOST, NO_PLACE, common_rounds, in_rounds, rounds_of
from numaplan.mapper.scaling.scaled import scaled_workload
from numaplan.mapper.scaling.team import Team
from numaplan.mapper.workload.lifetimes.lanes import by_lane, lanes_of
from numaplan.profiler import EVENT_CODE, Machine
from tests.support.traces import write_trace

PAGE, START, BLOCKS = 4096, 1 << 24, 1 << 26
PAGES = 4  # of each thread's part, and of its block


def record(path: Path, n: int, rounds: int) -> Path:
    """Rounds of n threads that the main thread makes: each writes its part of an array and a block that it
    made itself, and reads the next part."""
    rng = np.random.default_rng(n)
    turn = np.repeat(np.arange(rounds), 4000 * n)
    place = rng.integers(0, n, len(turn))
    what, page = rng.random(len(turn)), rng.integers(0, PAGES, len(turn))
    own = turn * n + place
    part = np.where(what < 0.3, (place + 1) % n, place)
    address = np.where(
        what > 0.7, BLOCKS + own * 2 * PAGES * PAGE + page * PAGE, START + (part * PAGES + page) * PAGE
    )
    begin = np.tile(np.arange(n * PAGES), 20)
    first = np.zeros(len(begin), np.int64)
    samples = {
        "time_ns": np.concatenate([np.arange(len(begin)), 10**6 + 100 * np.arange(len(turn))]),
        "thread": np.concatenate([first, 1 + own]),
        "cpu": np.full(len(begin) + len(turn), -1),
        "addr": np.concatenate([START + PAGE * begin, address + 64 * rng.integers(0, 64, len(turn))]),
        "event": np.full(len(begin) + len(turn), EVENT_CODE["store"]),
        "is_write": np.concatenate([first == 0, what >= 0.3]),
        "region": np.concatenate([first, np.where(what > 0.7, 1 + own, 0)]),
    }
    lasts = 100 * 4000 * n
    threads = [(0, "p0", "0", 0, 1, "app", 0, -1)]
    threads += [
        (1 + i, "p0", f"0.{1 + i}", 1 + i, 1, "app", 10**6 + i // n * lasts, 10**6 + (i // n + 1) * lasts)
        for i in range(rounds * n)
    ]
    regions = [(0, "p0", "heap", "app+0x1", "b", START, n * PAGES * PAGE, 0, 1, 0, -1)]
    regions += [
        (1 + i, "p0", "heap", "app+0x2", "b", BLOCKS + i * 2 * PAGES * PAGE, PAGES * PAGE, 1 + i, 1, 0, -1)
        for i in range(rounds * n)
    ]
    return write_trace(path, samples, threads, regions, {"period": 100, "build_id": "b"}, "4x2")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("rounds")
    return [record(folder / f"{n}.db", n, 3) for n in (4, 8)]


@pytest.fixture(scope="module")
def sixteen(recorded: list[Path]) -> Workload:
    return scaled_workload(recorded, 16, force=False)


def test_every_thread_of_every_team_has_a_place(sixteen: Workload) -> None:
    assert [path for _, path in sixteen.threads] == ["0", *(f"0.{i}" for i in range(1, 49))]
    assert sixteen.sources["scaling"]["rounds"] == 3 and not sixteen.notes
    plan = make_plan(sixteen, Machine.load("4x4"), PlanOptions()).plan
    node = {thread.path: thread.node for thread in plan.threads}
    for place in range(1, 17):
        assert node[f"0.{place}"] == node[f"0.{place + 16}"] == node[f"0.{place + 32}"]
    blocks = {one.region.thread: one for one in plan.memory if one.region.name == "app+0x2"}
    assert all({run.node for run in block.runs} == {node[path]} for path, block in blocks.items())


def test_what_members_make_for_themselves_every_team_makes(sixteen: Workload) -> None:
    pages = sixteen.pages
    assert pages is not None
    made = [key.thread for key in pages.regions if key.name == "app+0x2"]
    assert sorted(made) == sorted(f"0.{i}" for i in range(1, 49))
    whose = [path for _, path in sixteen.threads]
    for number, key in enumerate(pages.regions):
        if key.name == "app+0x2":
            assert {whose[thread] for thread in pages.thread[pages.region == number]} == {key.thread}
    used = np.bincount(pages.thread, pages.accesses, 49)[1:].reshape(3, 16)
    assert used.std() < 0.1 * used.mean()


def test_the_teams_together_are_the_one_that_was_carried_over(sixteen: Workload) -> None:
    lane = lanes_of(sixteen.threads, sixteen.lives)
    assert lane.tolist() == [0, *[*range(1, 17)] * 3]
    one, team = by_lane(sixteen, lane), Team(tuple(range(1, 17)), (0,), "0", False, 0)
    again = by_lane(in_rounds(one, team, 16, 3), lane)
    for name in ("comm", "loads"):
        assert getattr(again, name) == pytest.approx(getattr(one, name))
    assert again.use is not None and one.use is not None
    for name in ("accesses", "lines", "together"):
        assert getattr(again.use, name) == pytest.approx(getattr(one.use, name))


def test_later_threads_that_are_no_equal_teams_are_said_to_have_no_place(
    recorded: list[Path], tmp_path: Path
) -> None:
    found = scaled_workload([recorded[0], record(tmp_path / "two.db", 8, 2)], 16, force=False)
    assert len(found.threads) == 17 and found.notes == (NO_PLACE,)
    assert found.pages is not None
    assert {key.thread for key in found.pages.regions} == {path for _, path in found.threads}


def threads_of(*ends: int) -> tuple[Workload, list[int]]:
    """Threads of one creator that all begin when those before have ended, so many at a time."""
    lives = [(turn, turn + 1) for turn, many in enumerate(ends) for _ in range(many)]
    threads = [("p0", "0"), *(("p0", f"0.{1 + i}") for i in range(len(lives)))]
    made = Workload(
        threads=threads,
        comm=np.zeros((len(threads), len(threads))),
        loads=np.ones(len(threads)),
        sources={},
        lives=((0, -1), *lives),
    )
    return made, lanes_of(made.threads, made.lives).tolist()


@pytest.mark.parametrize(
    ("ends", "members", "leads", "rounds"),
    [
        ((4,), (1, 2, 3, 4), False, 1),
        ((4, 4, 4), (1, 2, 3, 4), False, 3),
        ((3, 3), (0, 1, 2, 3), True, 2),
        ((4, 3), (1, 2, 3, 4), False, 0),
        ((4, 1), (1, 2, 3, 4), False, 0),
        ((4, 4), (1, 2, 3), False, 0),  # the fourth is a helper, made after the first team
    ],
)
def test_what_counts_as_teams(
    ends: tuple[int, ...], members: tuple[int, ...], leads: bool, rounds: int
) -> None:
    made, lane = threads_of(*ends)
    others = tuple(row for row in range(max(lane) + 1) if row not in members)
    team = Team(members, others, "0", leads, 0)
    assert rounds_of(made, np.array(lane), team) == rounds


def test_recordings_must_have_as_many_teams_and_not_too_many() -> None:
    assert common_rounds([3, 3], 16) == 3 and common_rounds([3, 2], 16) == 0
    assert common_rounds([100, 100], MOST) == 0 and common_rounds([1, 1], 2 * MOST) == 1


def test_a_leader_is_there_all_the_time() -> None:
    one, _ = threads_of(3)
    one = Workload(threads=one.threads, comm=np.ones((4, 4)) - np.eye(4), loads=np.ones(4), sources={})
    found = in_rounds(one, Team((0, 1), (), "0", True, 0), 4, 2)
    assert [path for _, path in found.threads] == ["0", *(f"0.{i}" for i in range(1, 7))]
    assert found.loads.tolist() == [1.0, *[0.5] * 6] and found.lives[0] == (0, -1)
    comm = np.asarray(found.comm)
    assert not comm[1:4, 4:].any() and (comm == comm.T).all() and comm[0].sum() == 3.0
