"""Several recordings by one command: a job's ranks, each in its own trace, and a program's runs."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from numaplan.common import UsageError, check_output, is_asked_to_end

from ..backends.base import Progress
from .record import RecordOptions, RecordSummary, record

SCHEMA = "numaplan/record/1"
MOST_RUNS = 1000


@dataclass(frozen=True)
class RecordedRun:
    """One of several runs: its trace, and what was seen."""

    trace: Path
    summary: RecordSummary


def with_part(path: Path, part: str) -> Path:
    """`trace.r3.db` for `trace.db` and `r3`; raises UsageError for a folder without a name."""
    if not path.name:
        raise UsageError(f"{path}: is a directory", "name a file")
    return path.with_name(f"{path.stem}.{part}{path.suffix}")


def traces_of(argv: Sequence[str], output: Path, runs: int) -> list[Path]:
    """What so many runs write: `trace.db` alone, or `trace.1.db`, `trace.2.db` and so on.

    Raises UsageError for runs of nothing, and where one of several could not be written.
    """
    if not 1 <= runs <= MOST_RUNS:
        raise UsageError(f"--runs {runs}", f"give 1 to {MOST_RUNS}")
    if runs == 1:
        return [output]
    if not argv:
        raise UsageError("--runs without a program to start", "end the command with the program")
    traces = [with_part(output, str(number)) for number in range(1, runs + 1)]
    for trace in traces:
        check_output(trace, database=True)
    return traces


def record_runs(
    argv: Sequence[str],
    options: RecordOptions,
    runs: int,
    *,
    watch: Callable[[], AbstractContextManager[Progress]],
    chosen: Callable[[str, str], None],
    done: Callable[[RecordedRun], None],
) -> list[RecordedRun]:
    """Record `runs` runs of a program, each into its own of `traces_of`.

    It ends early, with what it has, after a run that did not end with 0 (Ctrl-C among them): what comes after
    a failure is not the same program. `watch` gives each its progress, `done` is called after each. Emulated
    runs differ in their seed, or they would be the same. Raises as record() and traces_of().
    """
    finished: list[RecordedRun] = []
    for number, trace in enumerate(traces_of(argv, options.output, runs)):
        one = replace(options, run=number, output=trace)
        with watch() as progress:
            summary = record(argv, one, progress=progress, chosen=chosen)
        finished.append(RecordedRun(one.output, summary))
        done(finished[-1])
        if finished[-1].summary.exit_code or is_asked_to_end():
            break
    return finished


def summary_document(runs: Sequence[RecordedRun]) -> dict[str, object]:
    """What `nprof record --summary` writes (schema numaplan/record/1)."""
    return {
        "schema": SCHEMA,
        "runs": [
            {
                "trace": str(run.trace),
                "exit_code": run.summary.exit_code,
                "samples": run.summary.samples,
                "threads": run.summary.threads,
                "losses": run.summary.losses,
                "backend": run.summary.backend,
                "backend_why": run.summary.reason,
            }
            for run in runs
        ],
    }
