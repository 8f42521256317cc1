"""`nlaunch --auto=record`: the first run of its kind is recorded, and its plan stored for the next ones.

The program comes first: whatever goes wrong with its recording, it runs once, to its end, and its exit code
is ours.
"""

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from numaplan.common import (
    NumaplanError,
    UsageError,
    is_asked_to_end,
    load_numpy,
    starts_ranks,
    swept_folder,
)
from numaplan.mapper import is_rank_alone

from ..enforce.program import gains_privileges
from .search import Known
from .start import Auto

if TYPE_CHECKING:
    from numaplan.mapper import Plan
    from numaplan.profiler import RecordOptions, RecordSummary

LEAST_SAMPLES = 1000
LEAST_SECONDS = 1.0  # of a program at its own speed
MOST_BYTES = 1 << 30  # that perf may write
_MODELLED = ("emulate", "lab")  # at another speed


class _NotRecordedError(Exception):
    """Nothing is recorded, for this reason; the program has not been started."""


def record_and_plan(auto: Auto) -> int | str:
    """Run the program recorded, plan, and store; the program's exit code. A text: why it was not started."""
    known = auto.search.known
    if known is None:
        return auto.search.reason
    if obstacle := obstacle_of(known):
        return f"not recorded: {obstacle}"
    try:
        return _record(auto, known)
    except _NotRecordedError as error:
        return f"not recorded: {error}"


def obstacle_of(known: Known) -> str:
    """Why this run cannot be recorded, or no plan of it stored; empty when it can."""
    if is_rank_alone(known.target.environment):
        return "a rank sees only itself: have nlaunch start the job (nlaunch --auto=record mpirun …)"
    if gains_privileges(known.target.executable):
        return "it gains privileges"
    try:
        known.store.check_writable(known.parts)
    except NumaplanError as error:
        return str(error)
    return ""


class _Run:
    """One recorded run: what it was recorded by, whether it was started, and how it ended."""

    def __init__(self, auto: Auto, known: Known) -> None:
        self._auto, self._known = auto, known
        self.backend = ""
        self.codes: list[int] = []
        self._began = self._ended = 0.0

    def chosen(self, backend: str, _reason: str) -> None:
        """Say what is about to happen; raises _NotRecordedError where it would bring nothing."""
        from numaplan.profiler import hint_faults_live

        auto = self._auto
        if backend == "faults" and not hint_faults_live(self._known.target.machine):
            raise _NotRecordedError(
                "no sampler of memory accesses here, and first touches do not show who uses what; "
                "--backend emulate sees all, tens of times slower"
            )
        self.backend = backend
        slower = ", tens of times slower than alone" if backend in _MODELLED else ""
        auto.say(
            f"first run of its kind: recorded with {backend}{slower}, at most its first"
            f" {auto.options.record_seconds:g} s, in {tempfile.gettempdir()};"
            f" its plan goes to {self._known.where}"
        )
        self._began = time.monotonic()

    def ended(self, code: int) -> None:
        """The program has."""
        self._ended = time.monotonic()
        self.codes.append(code)

    def unfit(self, summary: "RecordSummary") -> str:
        """Why no plan is to be made of it; empty when it is good."""
        if summary.exit_code:
            return f"it ended with {summary.exit_code}"
        if is_asked_to_end():
            return "interrupted"
        seconds = self._ended - self._began
        if self.backend not in _MODELLED and seconds < LEAST_SECONDS:
            return f"too short ({seconds:.1f} s of at least {LEAST_SECONDS:g} s)"
        if summary.samples < LEAST_SAMPLES:
            return f"too short ({summary.samples} samples of at least {LEAST_SAMPLES})"
        return ""


def _record(auto: Auto, known: Known) -> int:
    """Run the program under a recorder. Raises _NotRecordedError before the program's start."""
    load_numpy()
    from numaplan.profiler import record

    run = _Run(auto, known)
    with suppress(OSError):
        os.sched_setaffinity(0, auto.cpus)
    try:
        with swept_folder("numaplan-first-run-") as folder:
            options = _options(auto, run, folder / "trace.db")
            summary = record([*auto.request.argv], options, chosen=run.chosen)
            problem = run.unfit(summary)
            if problem:
                auto.say(f"not planned: {problem}")
            else:
                auto.say(_plan(known, folder / "trace.db"))
    except _NotRecordedError:
        raise
    except KeyboardInterrupt:
        if not run.codes:
            raise
        auto.say("not planned: interrupted")
    except Exception as error:
        if os.environ.get("NUMAPLAN_DEBUG"):
            raise
        problem = " ".join(str(error).split()) or type(error).__name__
        if not run.codes:
            raise _NotRecordedError(problem) from error
        auto.say(f"not planned: {problem}")
    return run.codes[0]


def _options(auto: Auto, run: _Run, output: Path) -> "RecordOptions":
    from numaplan.profiler import PerfChoices, ProgramStart, RecordedPart, RecordOptions

    start = ProgramStart(run.ended, pass_interrupts=True)
    ranks_only = starts_ranks(auto.request.argv)
    seconds = auto.options.record_seconds
    if auto.options.backend in _MODELLED:
        part = RecordedPart(take_seconds=seconds)
        return RecordOptions(output, auto.options.backend, ranks_only=ranks_only, part=part, start=start)
    # What only perf can do: so `auto` takes no emulation.
    choices = PerfChoices(duration=seconds, max_bytes=MOST_BYTES)
    backend = auto.options.backend or "auto"
    return RecordOptions(output, backend, choices=choices, ranks_only=ranks_only, start=start)


def _plan(known: Known, trace: Path) -> str:
    """Plan what was recorded, and store the plan; what to say of it. Raises NumaplanError."""
    from numaplan.mapper import PlanOptions, make_plan, misfit, with_executable, workload_of_traces
    from numaplan.profiler import Trace

    began = time.monotonic()
    plan = make_plan(workload_of_traces([trace]), known.target.machine, PlanOptions()).plan
    with Trace.open(trace) as opened:
        plan = with_executable(plan, opened.meta.get("executable_path", ""))
    if reason := misfit(plan, known.key, known.parts[2]):
        raise UsageError(f"what was recorded {reason}", "put the plan into the store by hand")
    if is_asked_to_end():
        raise KeyboardInterrupt
    where = known.store.put(known.parts, plan)
    return f"{_placed(plan)}, planned in {time.monotonic() - began:.1f} s: {where}"


def _placed(plan: "Plan") -> str:
    if plan.alone or not (plan.threads or plan.memory):
        return "nothing to place: the kernel is expected to do as well"
    parts = [
        f"{count} {what}{'s' * (count != 1)}"
        for count, what in ((len(plan.threads), "thread"), (len(plan.memory), "region"))
        if count
    ]
    return f"the next run is placed ({', '.join(parts)})"
