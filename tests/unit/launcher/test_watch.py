"""What `--watch` looks at of a running program: only what is still there."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from numaplan.launcher.enforce.plan_table import encode
from numaplan.launcher.verify import logged_run, watch
from numaplan.mapper import Ints
from numaplan.profiler import Record
from tests.support.small_plans import HEAP, locate, plan_of

THREAD, REGION, PAGES = 32, 33, 34  # kinds of records
PLAN = plan_of((HEAP, "bind"))
ADDRESS, SIZE = 1 << 30, 1 << 20


def record(kind: int, *, thread: int = 0, a: int = 0, c: int = 0, d: int = 0, text: bytes = b"") -> Record:
    return Record(kind, 0, thread, a, 0, c, d, 0, text)


def checked(monkeypatch: pytest.MonkeyPatch, *logs: tuple[int, list[Record]]) -> watch.PlacementCheck:
    """Of a process p0 with the threads 0 and 0.1, whose images (pid, records) have logged this."""
    entry = SimpleNamespace(name="p0", plays=0)
    images = [SimpleNamespace(entry=0, pid=pid, lost=0, records=records) for pid, records in logs]
    monkeypatch.setattr(logged_run, "read_control", lambda _: [entry])
    monkeypatch.setattr(logged_run, "read_logs", lambda _: images)
    threads = lambda pid: [SimpleNamespace(path="0", tid=pid), SimpleNamespace(path="0.1", tid=pid + 1)]  # noqa: E731
    monkeypatch.setattr(
        logged_run,
        "read_image",
        lambda log, *_: SimpleNamespace(threads=threads(log.pid), paths={0: "0", 1: "0.1"}),
    )
    # Other threads of the system, and its memory, have since taken these numbers.
    cpus = {100: {0}, 101: {7}, 200: {0}, 201: {2}}
    monkeypatch.setattr(watch.os, "sched_getaffinity", cpus.__getitem__)

    def on_node_1(_pid: int, pages: Ints) -> Ints:
        return np.ones(len(pages), dtype=np.int64)

    monkeypatch.setattr(watch, "page_nodes", on_node_1)
    table = encode(PLAN, {}, locate)
    return watch.check_placement(PLAN, table, logged_run.read_logged_run(Path(), table.processes))


def births() -> list[Record]:
    return [record(THREAD, thread=number, c=1, text=b"\1") for number in (0, 1)]


def test_threads_that_have_ended_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel gives their numbers to others."""
    assert checked(monkeypatch, (100, births())).misplaced_threads == ("0.1",)
    ended = record(THREAD, thread=1, c=1, d=1)
    check = checked(monkeypatch, (100, [*births(), ended]))
    assert (check.threads, check.misplaced_threads) == (1, ())


def test_of_processes_that_have_one_part_in_turn_the_last_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = checked(monkeypatch, (100, births()), (200, births()))
    assert (check.threads, check.misplaced_threads) == (2, ())


def test_blocks_that_are_gone_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies at their address is something else."""
    placed = record(REGION, c=ADDRESS, d=SIZE)
    gone = record(PAGES, a=0, c=4096)
    found = [checked(monkeypatch, (100, log)).pages for log in ([placed], [placed, gone])]
    assert found == [SIZE // 4096, 0]
    assert checked(monkeypatch, (100, [placed, gone, placed])).pages == SIZE // 4096
