"""Which threads could run, as an emulator looked."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import looked_at
from numaplan.analyzer.timeline.looks import FEWEST, LONG, MOST
from numaplan.common import UsageError
from numaplan.profiler import Trace
from tests.support.traces import write_trace


def trace(
    path: Path,
    looks: list[tuple[int, int]],
    lives: list[tuple[int, int]],
    processes: str = "",
    backend: str = "test",
) -> Path:
    """Looks (time, thread); lives: (start, end) of each thread; processes: number of each one's process."""
    threads = [
        (number, f"p{processes[number] if processes else 0}", f"0.{number}", number, 1, "x", start, end)
        for number, (start, end) in enumerate(lives)
    ]
    return write_trace(path, {"time_ns": np.arange(9)}, threads, running=looks, meta={"backend": backend})


def found(path: Path) -> tuple[list[float], list[list[float]]]:
    with Trace.open(path) as opened:
        answer = looked_at(opened)
    assert answer is not None
    return answer[0].tolist(), answer[1].tolist()


def test_a_look_holds_until_the_next(tmp_path: Path) -> None:
    looks = [(10 * at, thread) for at in range(FEWEST) for thread in ((0, 1) if at % 2 else (0,))]
    lasts, running = found(trace(tmp_path / "t.db", looks, [(0, -1), (0, -1), (0, -1)]))
    # With a cpu for each, two that run in turn take half as long.
    assert lasts == [10.0, 5.0] * (FEWEST // 2)
    assert running[:2] == [[1, 0, 0], [1, 1, 0]]


def test_a_thread_runs_only_while_it_lives(tmp_path: Path) -> None:
    looks = [(10 * at, thread) for at in range(FEWEST) for thread in (0, 1)]
    _, running = found(trace(tmp_path / "t.db", looks, [(0, -1), (15, 300)]))
    assert [row[1] for row in running] == [0, 0] + [1] * 29 + [0] * (FEWEST - 31)


def test_a_thread_whose_only_turn_ends_with_its_life_ran(tmp_path: Path) -> None:
    looks = [(10 * at, at) for at in range(FEWEST)]
    _, running = found(trace(tmp_path / "t.db", looks, [(10 * at - 9, 10 * at) for at in range(FEWEST)]))
    assert np.array_equal(running, np.eye(FEWEST))


def test_a_look_of_the_lab_is_at_all_processes(tmp_path: Path) -> None:
    looks = [(10 * at, thread) for at in range(FEWEST) for thread in ((0, 1) if at % 2 else (0,))]
    lasts, running = found(trace(tmp_path / "t.db", looks, [(0, -1), (0, -1)], "01", "lab"))
    # The second one runs no longer when it is not seen; and its accesses are told by the clock, too.
    assert running[:2] == [[1, 0], [1, 1]] and lasts == [10.0, 5.0] * (FEWEST // 2)


def test_each_process_is_as_it_was_last_seen_until_it_is_gone(tmp_path: Path) -> None:
    looks = [(10 * at, 0) for at in range(FEWEST)] + [(105, 1), (115, 1), (115, 2), (125, 2)]
    _, running = found(trace(tmp_path / "t.db", looks, [(0, -1)] * 3, "011"))
    others = [(row[1], row[2]) for row in running if row[1] or row[2]]
    assert all(row[0] for row in running)
    # At 105 and 110; at 115 and 120; at 125, 130; and as looks were 10 apart, not at 140.
    assert others == [(1, 0)] * 2 + [(1, 1)] * 2 + [(0, 1)] * 2


def test_who_waits_for_another_process_does_not_run_meanwhile(tmp_path: Path) -> None:
    """A shell before and after what it starts."""
    shell = [(10 * at, 0) for at in (*range(FEWEST), *range(5 * FEWEST, 6 * FEWEST))]
    started = [(10 * at + 5, 1) for at in range(FEWEST, 5 * FEWEST)]
    lasts, running = found(trace(tmp_path / "t.db", shell + started, [(0, -1)] * 2, "01"))
    both = sum(last for last, row in zip(lasts, running, strict=True) if all(row))
    assert sum(lasts) == 6 * FEWEST * 10 and both <= 10 * (LONG + 2)


def test_looks_of_a_part_are_those_within_it(tmp_path: Path) -> None:
    looks = [(10 * at, at // FEWEST) for at in range(3 * FEWEST)]
    whole = Trace.open(trace(tmp_path / "t.db", looks, [(0, -1)] * 3))
    with whole, whole.between(10 * FEWEST, 20 * FEWEST) as part:
        answer = looked_at(part)
    assert answer is not None and answer[0].sum() == 10 * FEWEST
    assert answer[1].mean(axis=0).tolist() == [0, 1, 0]


def test_few_looks_tell_nothing_and_many_are_thinned_evenly(tmp_path: Path) -> None:
    few = trace(tmp_path / "few.db", [(at, 0) for at in range(FEWEST - 1)], [(0, -1)])
    with Trace.open(few) as opened:
        assert looked_at(opened) is None
    many = [(at, 0) for at in range(MOST)] + [(MOST * (at + 2), 0) for at in range(MOST)]
    lasts, _ = found(trace(tmp_path / "many.db", many, [(0, -1)]))
    assert MOST // 2 < len(lasts) <= MOST and sum(lasts) == pytest.approx(MOST * (MOST + 1), rel=1e-3)


@pytest.mark.parametrize("look", [(0, 3), (0, -1), (-(1 << 63), 0), ((1 << 63) - 1, 0)])
def test_looks_that_cannot_be_are_refused(tmp_path: Path, look: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="threads that it has not could run, or at impossible times"):
        Trace.open(trace(tmp_path / "t.db", [look], [(0, -1)]))
