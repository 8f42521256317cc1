"""Children whose numbers are chance, as those of a server: in turn on the places of those that work."""

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.mapper import Workload
from numaplan.mapper.planning.dealing import dealt, turns
from numaplan.mapper.workload.from_trace import read_trace
from numaplan.mapper.workload.siblings import children_by_chance
from tests.support.timed import nodes_of, plan_of, workload
from tests.support.traces import write_trace

SERVER = [("p0", "0"), *[(f"p0.{number}", "0") for number in range(1, 12)]]
MADE = np.array([1e5, 1e5, 2e5, 1e7, 8e6, 1e7, 1e7, 9e6, 1e7, 1e7, 1e7, 1e4])
PAIRS = {(one, other): 1000.0 for one in range(3, 11) for other in range(one + 1, 11)}


def found(
    threads: list[tuple[str, str]], made: np.ndarray = MADE, names: tuple[str, ...] = ()
) -> list[list[int]]:
    return [own.tolist() for own in children_by_chance(threads, names, made)]


def test_children_that_work_after_others_that_do_less_are_numbered_by_chance() -> None:
    assert found(SERVER) == [list(range(1, 12))]
    shuffled = [SERVER[0], *SERVER[:0:-1]]
    assert found(shuffled, np.append(MADE[:1], MADE[:0:-1])) == [list(range(11, 0, -1))]
    assert found(SERVER, np.full(12, 1e7)) == []  # a pool of workers
    assert found(SERVER, np.append(MADE[:4], np.zeros(8))) == []  # one that works
    assert found([*SERVER[:11], ("p0.3", "0.1")]) == [[1, 2, *range(4, 11)]]  # with threads of its own
    assert found([(f"r{number}", "0") for number in range(12)]) == []  # ranks are numbered by MPI
    names = ("main", "probe", *["server"] * 10)
    assert found(SERVER, names=names) == [list(range(2, 12))]


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([0] * 4 + [2] * 4, [0, 2] * 4),
        ([1] * 6 + [0] * 2, [1, 0, 1, 1, 1, 0, 1, 1]),
        ([3] * 8, [3] * 8),
    ],
)
def test_as_many_as_before_are_on_each_place_in_turn(places: list[int], expected: list[int]) -> None:
    before = np.array([0, 5, 6, *places, 7])
    answer = dealt([np.arange(1, 12)], before, MADE)
    assert answer[3:11].tolist() == expected
    assert answer[[0, 1, 2, 11]].tolist() == [0, 5, 6, 7]
    assert turns([np.arange(1, 12)], answer, MADE) >= turns([np.arange(1, 12)], before, MADE)


def server(threads: list[tuple[str, str]]) -> Workload:
    work = workload(12, lines=PAIRS)
    assert work.use is not None
    return replace(work, threads=threads, use=replace(work.use, accesses=MADE))


def test_one_child_more_or_less_leaves_as_many_on_each_node() -> None:
    def together(threads: list[tuple[str, str]]) -> int:
        """How many of those that work follow one another on one node, at most."""
        working = nodes_of(plan_of(server(threads), "2x4"))[3:11]
        assert set(working) == {0, 1}
        return max(len(list(run)) for _, run in groupby(working))

    assert together(SERVER) <= 2
    assert together([("p0", f"0.{number}" if number else "0") for number in range(12)]) > 2


def test_what_they_exchange_is_expected_to_be_alike(tmp_path: Path) -> None:
    """In this run each takes lines from the next one only."""
    number = np.arange(9000)
    thread = number % 9
    samples = {"time_ns": number * 10, "thread": thread, "is_write": True, "addr": (1 << 24) + number * 64}
    kept = (thread > 1) | (number < 400)  # the first child does little
    transfers = [(0, 90_000, one, one % 8 + 1, one % 8 + 1, 500) for one in range(2, 8)]
    threads = [
        (at, f"p0.{at}" if at else "p0", "0", at + 1, 1, "server", 10 if at else 0, -1) for at in range(9)
    ]
    path = write_trace(
        tmp_path / "t.db",
        {name: np.broadcast_to(column, 9000)[kept] for name, column in samples.items()},
        threads,
        meta={"period": 1, "transfers": "all"},
        transfers=transfers,
    )
    use = read_trace(path, pages=True, by_phase=False).workload.use
    assert use is not None and use.chance is not None
    own = use.lines[2:9, 2:9][~np.eye(7, dtype=bool)]
    assert own.min() == pytest.approx(own.max()) and own.min() > 0
    assert use.chance[2, 3] > 0
