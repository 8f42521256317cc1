"""Several recordings by one command: names, ranks, and when a series ends."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from numaplan.common import UsageError, run_command, run_program
from numaplan.profiler.backends.base import EndedBySignalError, Progress, check_not_killed
from numaplan.profiler.commands import record as command
from numaplan.profiler.identity.rank import job_facts, rank_of, ranks_here
from numaplan.profiler.recording import runs as series
from numaplan.profiler.recording.record import RecordOptions, RecordSummary
from numaplan.profiler.recording.runs import RecordedRun, record_runs, summary_document, with_part


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({}, None),
        ({"PMI_RANK": "3"}, 3),
        ({"OMPI_COMM_WORLD_RANK": "0"}, 0),
        ({"PMI_RANK": ""}, None),
        ({"PMI_RANK": "-1"}, None),
        ({"PMI_RANK": "9" * 12}, None),
        ({"SLURM_PROCID": "0"}, None),  # a batch script
        ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8"}, 5),
        ({"OMPI_COMM_WORLD_RANK": "1", "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8"}, 1),
    ],
)
def test_ranks_by_environment(environment: dict[str, str], rank: int | None) -> None:
    assert rank_of(environment) == rank


@pytest.mark.parametrize(
    ("environment", "facts"),
    [
        ({"SLURM_JOB_ID": "17", "SLURM_PROCID": "0"}, {}),  # a batch script
        ({"PMI_RANK": "3"}, {"rank": 3}),
        (
            {"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1"},
            {"rank": 3, "ranks": 8, "local_rank": 1},
        ),
        (
            {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "17"},
            {"rank": 5, "ranks": 8, "local_rank": 1, "job": "17"},
        ),
        ({"PMI_RANK": "0", "PMI_SIZE": "many", "PBS_JOBID": "9" * 999}, {"rank": 0, "job": "9" * 256}),
    ],
)
def test_what_a_trace_says_of_its_job(environment: dict[str, str], facts: dict[str, object]) -> None:
    assert job_facts(environment) == ({**facts, "host": os.uname().nodename} if facts else {})


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({}, None),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, 2),
        ({"PMI_SIZE": "8", "MPI_LOCALNRANKS": "3"}, 3),
        *(
            (
                {"SLURM_STEP_NUM_TASKS": "6", "SLURM_NODEID": node, "SLURM_STEP_TASKS_PER_NODE": "2(x2),1,x"},
                count,
            )
            for node, count in (("0", 2), ("1", 2), ("2", 1), ("3", None))
        ),
        ({"SLURM_NODEID": "0", "SLURM_STEP_TASKS_PER_NODE": "2"}, None),  # a batch script
    ],
)
def test_ranks_on_this_host(environment: dict[str, str], count: int | None) -> None:
    assert ranks_here(environment) == count


def test_names_of_parts() -> None:
    assert with_part(Path("a/trace.db"), "r3") == Path("a/trace.r3.db")
    assert with_part(with_part(Path("trace"), "r3"), "1") == Path("trace.1.r3")
    for folder in (".", "/"):
        with pytest.raises(UsageError, match="is a directory"):
            with_part(Path(folder), "1")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--runs", "2", "--summary", "t.2.db"], "would be written over --summary"),
        (["--runs", "2", "-o", "folder.db"], "folder.2.db: is a directory"),
        (["--estimate", "-o", "missing/t.db"], "no folder missing"),
        (["--estimate", "--runs", "0"], "--runs 0"),
        (["--estimate", "--set", "turn=x"], "turn=x: not a number"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_runs(
    words: list[str],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.2.db").mkdir()
    ours = ["--backend", "emulate", "-o", "t.db", *words, "touch", "ran"]
    assert run_command(command.RecordCommand, "nprof record", ours) == 2
    assert reason in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["folder.2.db"]


@contextmanager
def silent() -> Iterator[Progress]:
    yield lambda _what, _share: None


def recorded(monkeypatch: pytest.MonkeyPatch, codes: list[int]) -> list[RecordedRun]:
    """A series of as many runs as codes, whose programs end with these."""
    asked: list[RecordOptions] = []

    def record(_argv: object, options: RecordOptions, **_more: object) -> RecordSummary:
        asked.append(options)
        return RecordSummary(codes[len(asked) - 1], 10, 1, 0, "emulate", "")

    monkeypatch.setattr(series, "record", record)
    told: list[RecordedRun] = []
    runs = record_runs(
        ["app"],
        RecordOptions(Path("t.db")),
        len(codes),
        watch=silent,
        chosen=lambda _backend, _why: None,
        done=told.append,
    )
    assert told == runs
    assert [options.run for options in asked] == list(range(len(asked)))
    assert [options.output for options in asked] == [run.trace for run in runs]
    return runs


def test_each_run_has_a_trace_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [str(run.trace) for run in recorded(monkeypatch, [0, 0, 0])] == ["t.1.db", "t.2.db", "t.3.db"]
    assert [str(run.trace) for run in recorded(monkeypatch, [0])] == ["t.db"]


def test_a_failure_ends_the_series(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = recorded(monkeypatch, [0, 130, 0])
    assert [run.summary.exit_code for run in runs] == [0, 130]
    assert [run["exit_code"] for run in summary_document(runs)["runs"]] == [0, 130]  # type: ignore[attr-defined]


def test_a_signal_ends_the_series_and_is_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def record(_argv: object, _options: object, **_more: object) -> RecordSummary:
        assert run_program(["true"], os.environ) == 0
        os.kill(os.getpid(), signal.SIGTERM)  # while its trace is written
        return RecordSummary(0, 10, 1, 0, "emulate", "")

    monkeypatch.setattr(series, "record", record)
    monkeypatch.setattr(command, "_say_run", lambda _run: None)
    monkeypatch.chdir(tmp_path)
    summary = tmp_path / "s.json"
    words = ["--runs", "3", "--summary", str(summary), "true"]
    assert run_command(command.RecordCommand, "nprof record", words) == 128 + signal.SIGTERM
    assert len(json.loads(summary.read_bytes())["runs"]) == 1


def test_what_a_signal_ended_too_early_has_its_exit_code() -> None:
    with pytest.raises(EndedBySignalError, match=r"\./app: SIGHUP ended it before anything") as ended:
        check_not_killed("./app", 128 + signal.SIGHUP)
    assert ended.value.exit_code == 128 + signal.SIGHUP
    for code in (0, 1, 128, 255):
        check_not_killed("./app", code)


@pytest.mark.parametrize(("argv", "runs"), [(["app"], 0), (["app"], 1001), ([], 2)])
def test_series_of_nothing(argv: list[str], runs: int) -> None:
    with pytest.raises(UsageError, match="--runs"):
        record_runs(
            argv,
            RecordOptions(),
            runs,
            watch=silent,
            chosen=lambda _backend, _why: None,
            done=lambda _run: None,
        )
