"""Messages between ranks: one trace of a job, one a rank, and several runs."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from numaplan.analyzer import RankMessages, rank_messages
from numaplan.profiler import Trace
from tests.support.traces import write_trace


def thread(rank: int, at: int = 0) -> tuple[Any, ...]:
    return (at, f"r{rank}", "0", 100 + rank, 100 + rank, "app", 0, -1)


def trace(path: Path, seen: list[int], messages: list[tuple[Any, ...]] | None, **meta: object) -> Path:
    rows = [(rank, peer, kind, size, count, -1) for rank, peer, kind, size, count in messages or []]
    threads = [thread(rank, at) for at, rank in enumerate(seen)]
    return write_trace(
        path, {"time_ns": [1]}, threads, meta=meta, messages=None if messages is None else rows
    )


def read(*paths: Path) -> RankMessages | None:
    with ExitStack() as stack:
        return rank_messages([stack.enter_context(Trace.open(path)) for path in paths])


def pairs(found: RankMessages | None) -> list[tuple[int, int, float, float]]:
    assert found is not None
    return list(
        zip(found.rank.tolist(), found.peer.tolist(), found.bytes.tolist(), found.count.tolist(), strict=True)
    )


def test_one_trace_of_all_ranks(tmp_path: Path) -> None:
    rows = [
        (0, 1, "sent", 640, 10),
        (0, 1, "collective", 64, 1),
        (1, 0, "get", 8, 2),  # comes from 0
        (1, 2, "modelled", 88, 1),
        (2, 2, "sent", 1000, 1),  # to itself
    ]
    found = read(trace(tmp_path / "t.db", [0, 1, 2, 3], rows))
    assert pairs(found) == [(0, 1, 712, 13), (1, 2, 88, 1)]
    assert found is not None
    assert (found.ranks, found.recorded.tolist()) == (4, [0, 1, 2, 3])
    assert found.kinds == {"sent": (640, 10), "get": (8, 2), "collective": (64, 1), "modelled": (88, 1)}
    assert list(found.kinds) == ["sent", "get", "collective", "modelled"]
    assert found.share("modelled") == pytest.approx(0.11)
    assert found.lines.tolist() == [712 / 64, 88 / 64]


def test_a_trace_of_each_rank(tmp_path: Path) -> None:
    first = trace(tmp_path / "a.db", [0], [(0, 1, "sent", 10, 1)], rank=0, ranks=8)
    second = trace(tmp_path / "b.db", [1], [(1, 0, "sent", 20, 2)], rank=1, ranks=8)
    found = read(first, second)
    assert pairs(found) == [(0, 1, 10, 1), (1, 0, 20, 2)]
    assert found is not None
    assert (found.ranks, found.recorded.tolist()) == (8, [0, 1])


def test_runs_are_a_mean(tmp_path: Path) -> None:
    first = trace(tmp_path / "a.db", [0, 1], [(0, 1, "sent", 10, 1), (1, 0, "sent", 4, 4)])
    second = trace(tmp_path / "b.db", [0, 1], [(0, 1, "sent", 30, 3)])  # in which 1 said nothing
    assert pairs(read(first, second)) == [(0, 1, 20, 2), (1, 0, 2, 2)]


def test_what_was_not_recorded_is_not_known(tmp_path: Path) -> None:
    silent = trace(tmp_path / "a.db", [0], None)
    assert read(silent) is None
    told = trace(tmp_path / "b.db", [1], [])
    found = read(silent, told)
    assert pairs(found) == []
    assert found is not None
    assert (found.ranks, found.recorded.tolist(), found.share("sent")) == (2, [1], 0.0)
