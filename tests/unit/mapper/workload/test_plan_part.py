"""Plans from a part of a recording: `--from`, `--to`, `--phase`."""

import json
from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import analyze_trace
from numaplan.common import UsageError
from numaplan.mapper import Plan
from numaplan.mapper.commands.main import main
from numaplan.mapper.workload.from_trace import workload_of_trace
from numaplan.mapper.workload.part import Part
from numaplan.mapper.workload.runs import workload_of_traces
from numaplan.profiler import EVENT_CODE, Trace
from tests.support.traces import write_trace

PAGE, START, SECOND = 4096, 1 << 24, 10**9
PAGES = 8


def record(path: Path, clock: str = "host", counted: bool = False) -> Path:
    """Thread 0 touches all pages in the first second; then 1 with 2, then 2 with 3 write four pages each.

    counted: with all accesses by page, a stretch for each second.
    """
    early = np.arange(1000)
    late = np.arange(20_000)
    half = late >= 10_000
    time = np.concatenate([early * 10**6, SECOND + late * 10**5])
    thread = np.concatenate([early * 0, 1 + half + late % 2])
    page = np.concatenate([early % PAGES, 4 * half + late // 2 % 4])
    samples = {
        "time_ns": time,
        "thread": thread,
        "addr": START + page * PAGE + np.concatenate([early, late // 8]) % 64 * 64,
        "event": EVENT_CODE["store"],
        "is_write": True,
        "region": 0,
    }
    threads = [(i, "p0", f"0.{i}" if i else "0", i, 1, "t", 0, -1) for i in range(4)]
    regions = [(0, "p0", "heap", "app+0x1", "b", START, PAGES * PAGE, 0, 1, 0, -1)]
    meta = {"period": 1, "clock": clock, "duration_ns": 3 * SECOND}
    uses = [(0, SECOND, 0, 0, 0, START + place * PAGE, 0, 125, 0) for place in range(PAGES)]
    for second, page, thread in [(1, 0, 1), (1, 0, 2), (2, 4, 2), (2, 4, 3)]:
        begin = second * SECOND
        uses += [
            (begin, begin + SECOND, begin + thread, thread, 0, START + place * PAGE, 0, 1250, 0)
            for place in range(page, page + 4)
        ]
    return write_trace(path, samples, threads, regions, meta, "2x2", page_use=uses if counted else None)


def pairs(comm: np.ndarray) -> set[tuple[int, int]]:
    return {(int(one), int(other)) for one, other in np.argwhere(np.triu(comm, 1))}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Part(start="1s", end="2s"), {(1, 2)}),
        (Part(start="2000ms"), {(2, 3)}),
        (Part(start="1s", end="100%"), {(1, 2), (2, 3)}),
        (Part(end="33.3%"), set()),
    ],
)
def test_only_that_part_counts(part: Part, expected: set[tuple[int, int]], tmp_path: Path) -> None:
    workload = workload_of_trace(record(tmp_path / "t.db"), part=part)
    assert pairs(np.asarray(workload.comm)) == expected
    active = {thread for pair in expected for thread in pair} or {0}
    assert set(np.flatnonzero(workload.loads).tolist()) == active
    assert workload.sources["part"] and any("only from" in note for note in workload.notes)


@pytest.mark.parametrize("counted", [False, True])
def test_who_touched_memory_first_is_asked_of_what_came_before(counted: bool, tmp_path: Path) -> None:
    pages = workload_of_trace(record(tmp_path / "t.db", counted=counted), part=Part(start="2s")).pages
    assert pages is not None and pages.toucher is not None and pages.before is not None
    used = pages.accesses > 0
    assert set(pages.thread[used].tolist()) == {2, 3}
    assert set(pages.page[used].tolist()) == {4, 5, 6, 7}
    assert set(pages.toucher[used].tolist()) == {0}
    assert pages.accesses.sum() == 10_000 and pages.before.sum() == 0 and pages.exact == counted


def test_times_of_an_emulated_recording_are_accesses(tmp_path: Path) -> None:
    trace = record(tmp_path / "t.db", clock="accesses")
    by_accesses = workload_of_trace(trace, part=Part(start="1G", end="2000M"))
    by_time = workload_of_trace(trace, part=Part(start="1s", end="2s"))
    assert np.array_equal(np.asarray(by_accesses.comm), np.asarray(by_time.comm))
    assert "1,000,000,000 accesses" in " ".join(by_accesses.notes)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Part(start="4s"), "ends before"),
        (Part(start="2s", end="1s"), "nothing lies between"),
        (Part(start="500us", end="600us"), "no sample from 0.0005 s to 0.0006 s"),
        (Part(start="1M"), "not a time"),
        (Part(start="5"), "not a time"),
        (Part(start="101%"), "not a time"),
        (Part(end="soon"), "not a time"),
        (Part(phase=99), "phase"),
        (Part(phase=1, end="1s"), "--phase with"),
    ],
)
def test_what_cannot_be_is_said(part: Part, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        workload_of_trace(record(tmp_path / "t.db"), part=part)


def test_phases_are_those_of_the_analysis(tmp_path: Path) -> None:
    with Trace.open(record(tmp_path / "t.db")) as whole:
        analysis = analyze_trace(whole)
        assert len(analysis.phases) > 1
        for number, phase in enumerate(analysis.phases, 1):
            with Part(phase=number).of(whole) as part:
                assert part.sample_count == analysis.timeline.amount[phase.start : phase.end].sum()


def test_several_runs_are_cut_alike(tmp_path: Path) -> None:
    runs = [record(tmp_path / f"{name}.db") for name in "ab"]
    workload = workload_of_traces(runs, part=Part(start="2s"))
    assert pairs(np.asarray(workload.comm)) == {(2, 3)}
    assert "of each run only --from 2s" in workload.notes


@pytest.mark.slow
def test_the_plan_says_of_what_part_it_is_and_is_judged_by_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, plan = str(record(tmp_path / "t.db")), str(tmp_path / "plan.json")
    assert main(["plan", trace, "-o", plan, "--from", "2s"]) == 0
    assert Plan.load(Path(plan)).provenance["part"] == {"from": "2s"}
    assert "only from 2 s to 3 s: 10,000 of 21,000 samples" in capsys.readouterr().err
    assert main(["check", trace, "--baseline", plan]) == 0
    assert "only from 2 s" in capsys.readouterr().err
    assert main(["check", trace, "--baseline", plan, "--to", "2s"]) in (0, 1)
    assert "only from 0 s to 2 s" in capsys.readouterr().err
    assert main(["compare", trace, "--from", "1s", "--to", "2s", "--json"]) == 0
    assert main(["report", trace, "--from", "1s", "-o", str(tmp_path / "r.html")]) == 0
    capsys.readouterr()
    assert main(["analyze", trace, "--from", "1s", "--until", "2s", "--json"]) == 0
    assert pairs(np.array(json.loads(capsys.readouterr().out)["comm"])) == {(1, 2)}


def test_a_matrix_has_no_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "comm.csv").write_text("0,1\n1,0\n")
    words = ["compare", "--comm", str(tmp_path / "comm.csv"), "--machine", "2x2", "--from", "1s"]
    assert main(words) == 2
    assert "go with a trace" in capsys.readouterr().err
