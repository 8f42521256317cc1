"""What to do first: each advice has evidence in the trace, a gain by the cost formula, and its place."""

from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.mapper.advice.changed_touch import touched_by_users
from numaplan.mapper.commands.main import main
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.cost.unplanned import alone, in_order
from numaplan.mapper.planning.options import PlanOptions
from numaplan.mapper.planning.planner import plan_task
from numaplan.profiler import EVENT_CODE, LEVEL_CODE, Machine
from tests.support.timed import workload
from tests.support.traces import write_trace

THREADS, PAGES, PAGE = 4, 64, 4096
GRID, COUNTERS, TEXT = 1 << 30, 1 << 31, 1 << 20
BEGIN = 10_000  # from when on there are other threads than the main one
EVIL = "<script>grid"


def trace_of(
    path: Path, rows: list[tuple[int, int, int, bool, int]], *, level: str, name: str = "grid"
) -> str:
    """rows: time, thread, address, write, region; of a program of OpenMP."""
    time, thread, addr, write, region = (np.array(column) for column in zip(*rows, strict=True))
    kind = np.where(write, EVENT_CODE["store"], EVENT_CODE["load"])
    samples = {"time_ns": time, "thread": thread, "addr": addr, "is_write": write, "region": region}
    samples |= {"event": kind, "level": LEVEL_CODE[level], "ip": TEXT + 0x1042}
    regions = [
        (0, "p0", "heap", name, "b", GRID, PAGES * PAGE, 0, 1, 0, -1),
        (1, "p0", "static", "app:counters", "b", COUNTERS, 64, -1, 0, 0, -1),
        (2, "p0", "text", "app:.rodata", "b", TEXT, 0x1000, -1, 0, 0, -1),
        (3, "p0", "text", "app:.text", "b", TEXT + 0x1000, 0x1000, -1, 0, 0, -1),
        (4, "p0", "static", "libgomp.so.1:.bss", "g", 1 << 40, 64, -1, 0, 0, -1),
    ]
    threads = [
        (one, "p0", f"0.{one}" if one else "0", 10 + one, 10, "app", BEGIN * bool(one), -1)
        for one in range(THREADS)
    ]
    meta = {"period": 1000, "argv": '["./app"]', "duration_ns": int(time.max()) + 1}
    return str(write_trace(path, samples, threads, regions, meta))


def serial(path: Path, **more: Any) -> str:
    """The main thread writes a grid first, then each thread works on its own quarter of it."""
    rows = [
        (page * 50 + word, 0, GRID + page * PAGE + word * 64, True, 0)
        for page in range(PAGES)
        for word in (0, 1)
    ]
    for turn in range(40):
        for page in range(PAGES):
            user = page * THREADS // PAGES
            at = BEGIN + turn * 6400 + page * 100 + user
            rows.append((at, user, GRID + page * PAGE + turn * 64, turn % 4 == 0, 0))
    return trace_of(path, rows, level="local_dram", **more)


def shared_line(path: Path) -> str:
    """Each thread counts in its own eight bytes of one line, and works on memory of its own."""
    rows = [
        (BEGIN + turn * 40 + one, one, COUNTERS + 8 * one, True, 1) for turn in range(400) for one in range(4)
    ]
    rows += [(at + 10, one, GRID + one * 16 * PAGE + at % 64, False, 0) for at, one, *_ in rows[::4]]
    return trace_of(path, sorted(rows), level="l1")


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["analyze", *words, "--json"]) == 0
    document: dict[str, Any] = msgspec.json.decode(capsys.readouterr().out)
    return document


def test_memory_that_one_thread_touches_first_is_to_be_initialised_in_parallel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, serial(tmp_path / "t.db"))["advice"]
    gains = [one["gain_ns"] for one in found]
    assert gains == sorted(gains, reverse=True) and all(0 < one["gain"] <= 1 for one in found)
    (first,) = (one for one in found if one["kind"] == "initialise")
    assert first["action"] == "initialise heap grid in parallel at app+0x1042"
    assert first["evidence"].startswith("100% of its pages are touched first by thread 0, which makes 2")
    assert "omp parallel for" in first["change"] and first["change"].endswith("./app")
    assert first["local_share"]["before"] < 0.6 and first["local_share"]["after"] == 1
    plan = next(one for one in found if one["kind"] == "plan")
    assert plan["change"].startswith("nmap plan ") and plan["change"].endswith(
        "nlaunch --plan plan.json -- ./app"
    )


def test_what_the_source_calls_things_is_what_people_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = serial(tmp_path / "t.db")
    with duckdb.connect(path) as trace:
        trace.execute(
            "INSERT INTO names VALUES (0, -1, 'grid', 'double[]', '/src/heat.c', 42, 'main', 8, -1)"
        )
        trace.execute(f"INSERT INTO code VALUES ('p0', {TEXT + 0x1042}, 'fill', '/src/heat.c', 51)")
    (found,) = (one for one in answer(capsys, path)["advice"] if one["kind"] == "initialise")
    assert found["action"] == "initialise `grid` in parallel at heat.c:51"
    assert found["evidence"].endswith("of its accesses (grid (double[], 256 KiB) heat.c:42 in main)")


def test_the_gain_is_that_of_the_cost_formula() -> None:
    """Serial initialisation of memory that others use, against their own: as the formula prices both."""
    work, machine = workload(users=[[0], [1], [2], [3]]), Machine.load("2x2")
    task, _ = plan_task(work, machine, PlanOptions(objective="time"))
    timed = TimedTask(task)
    other = timed.with_misses(touched_by_users(timed.pages.recorded, range(4)))
    bound = in_order(other)
    assert bound.traffic[np.arange(4), [0, 0, 1, 1]].sum() == pytest.approx(bound.traffic.sum())
    assert bound.cost.total_ns < alone(timed).cost.total_ns


def test_another_first_touch_keeps_all_that_is_counted() -> None:
    rng = np.random.default_rng(3)
    rows = sorted({(int(r), int(p), int(t)) for r, p, t in rng.integers(0, [3, 20, 5], (200, 3))})
    region, page, thread = np.array(rows).T
    pages = PageCounts(
        [],
        region,
        page,
        thread,
        rng.integers(1, 9, len(rows)),
        0 * thread,
        toucher=0 * thread,
        before=rng.integers(0, 3, len(rows)),
        missed_before=rng.integers(0, 2, len(rows)),
    )
    found = touched_by_users(pages, [0, 2])
    assert found.toucher is not None and found.before is not None and found.missed_before is not None
    assert pages.before is not None and pages.missed_before is not None and pages.toucher is not None
    kept = region == 1
    assert (found.toucher[kept] == 0).all() and (found.before[kept] == pages.before[kept]).all()
    for number in range(3):
        own = region == number
        assert found.before[own].sum() == pages.before[own].sum()
        assert found.missed_before[own].sum() == pages.missed_before[own].sum()
    for at in np.flatnonzero(~kept):
        same = (region == region[at]) & (page == page[at])
        user = found.toucher[at]
        assert pages.accesses[same].max() == pages.accesses[same & (thread == user)].sum()
        assert not found.before[same & (thread != user)].any()
    nothing = touched_by_users(replace(pages, thread=-1 - 0 * thread), [0])
    assert nothing.toucher is not None and not nothing.toucher.any()


def test_a_falsely_shared_line_is_to_be_padded_on_any_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = shared_line(tmp_path / "t.db")
    for machine in ("2x2", "1x4"):
        found = answer(capsys, path, "--machine", machine)
        pad = next(one for one in found["advice"] if one["kind"] == "pad")
        assert pad["action"] == "separate what 4 threads use of static app:counters"
        assert "1 cache line," in pad["evidence"] and pad["gain"] > 0.5
        assert ("one node" in found.get("no_advice", "")) == (machine == "1x4")
        assert ("--machine 4x2, here and for 'nmap plan'" in found.get("no_advice", "")) == (machine == "1x4")


def test_counts_of_the_lab_stand_beside_the_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, counts = serial(tmp_path / "t.db"), tmp_path / "counts.json"
    content: dict[str, Any] = {
        "schema": "numaplan/lab-compare/1",
        "argv": ["/tmp/app"],
        "configs": {
            name: {"local_share": {"median": share, "min": 0, "max": 1}}
            for name, share in (("default", 0.25), ("plan", 0.97), ("interleave", 0.26))
        },
    }
    counts.write_bytes(msgspec.json.encode(content))
    found = {one["kind"]: one for one in answer(capsys, path, "--counts", str(counts))["advice"]}
    assert found["plan"]["counted"] == {"before": 0.25, "after": 0.97}
    assert "counted" not in found["initialise"]
    assert main(["analyze", path, "--counts", str(counts)]) == 0
    assert "counted in the lab: 25% → 97% local" in " ".join(capsys.readouterr().out.split())
    content["configs"]["plan"]["local_share"]["median"] = 0.1
    counts.write_bytes(msgspec.json.encode(content))
    assert answer(capsys, path, "--counts", str(counts))["advice"][-1]["kind"] == "plan", "it did harm"
    for name, cost in (("default", 200.0), ("plan", 150.0)):
        content["configs"][name]["cost"] = {"median": cost, "min": cost, "max": cost}
    counts.write_bytes(msgspec.json.encode(content))
    found = {one["kind"]: one for one in answer(capsys, path, "--counts", str(counts))["advice"]}
    assert found["plan"]["counted_gain"] == 0.25 and next(iter(found)) != "interleave"
    for wrong in (content | {"argv": ["other"]}, content | {"schema": "numaplan/lab/1"}, {}):
        counts.write_bytes(msgspec.json.encode(wrong))
        assert main(["analyze", path, "--counts", str(counts)]) == 2
        said = capsys.readouterr()
        assert said.out == "" and len(said.err.strip().splitlines()) == 1


def test_the_page_begins_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page, plan = serial(tmp_path / "t.db", name=EVIL), tmp_path / "r.html", tmp_path / "plan.json"
    assert main(["plan", path, "-o", str(plan)]) == 0
    assert main(["report", path, "--plan", str(plan), "-o", str(page)]) == 0
    text = page.read_text()
    start, end = text.index('<section id="advice">'), text.index('<div id="figures">')
    assert start < end and EVIL not in text and "initialise heap &lt;script&gt;grid in parallel" in text
    assert f"nlaunch --plan {plan} -- ./app" in text[start:end]
    capsys.readouterr()
