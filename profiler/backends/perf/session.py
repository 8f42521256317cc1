"""One recording by perf, from its arguments to the samples: what all backends that use perf share."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from numaplan.common import MachineLacksError, NumaplanError, UsageError

from ...perfdata.accesses.conversion import Converted, convert
from ...perfdata.accesses.event_kinds import PeriodCounter, period_facts
from ...perfdata.decoded import Decoded, decode_perf
from ...recorded import Recording
from ..base import WATCHING, Progress, RecordRequest
from .process import INTERRUPTED
from .progress import Meter
from .running import PerfRun, run_attached, run_recorded

_USER_END = np.uint64(1 << 63)
_THROTTLE = 5  # the kernel's record for a sampler that it slowed down


def shown_command(request: RecordRequest, arguments: Sequence[str], machine_wide: bool = False) -> list[str]:
    """A command line that records the same by hand; we start perf on the waiting program instead."""
    choices = request.choices
    if choices.pids:
        target = ["-p", ",".join(map(str, choices.pids))]
    else:
        target = ["-a"] if machine_wide or choices.all_cpus else []
    program = list(request.argv)
    if choices.duration and not program:
        program = ["sleep", f"{choices.duration:g}"]
    return [
        "perf",
        "record",
        "-q",
        *arguments,
        "-o",
        "perf.data",
        *target,
        *(["--", *program] if program else []),
    ]


def run_perf(
    request: RecordRequest,
    arguments: Sequence[str],
    output: Path,
    progress: Progress,
    machine_wide: bool = False,
) -> PerfRun:
    """Record the request's program, or what runs already. Raises as run_recorded and run_attached."""
    choices = request.choices
    if request.argv:
        meter = Meter(output)
        return run_recorded(
            request.argv,
            request.environment,
            arguments,
            output,
            machine_wide=machine_wide or choices.all_cpus,
            duration=choices.duration,
            tick=lambda pid: progress(meter.line([pid]), WATCHING),
        )
    for pid in choices.pids:
        if not Path(f"/proc/{pid}").exists():
            raise UsageError(f"no process {pid}", "give the id of a running process")
    meter = Meter(output)
    target = f"process {', '.join(map(str, choices.pids))}" if choices.pids else "all cpus"
    progress(f"watching {target}", -1.0)
    return run_attached(
        choices.pids,
        arguments,
        output,
        duration=choices.duration,
        tick=lambda: progress(f"{target}: {meter.line(choices.pids)}; Ctrl-C ends it", -1.0),
    )


def decode_output(output: Path, messages: str) -> Decoded:
    """Decode what perf wrote; raises MachineLacksError with perf's words when it cannot be read."""
    try:
        return decode_perf(output)
    except NumaplanError as error:
        raise MachineLacksError(
            f"perf recorded nothing that can be read: {messages or error.what}", "see 'nprof doctor'"
        ) from error


def own_accesses(decoded: Decoded, run: PerfRun, only_family: bool) -> Converted:
    """The accesses to user memory, without those of our own child before it became the program.

    only_family: leave out all but the program and its descendants. Raises KeyboardInterrupt when Ctrl-C came
    before the program's start.
    """
    if run.exit_code == INTERRUPTED and run.pid >= 0 and run.pid not in {pid for _time, pid in decoded.execs}:
        raise KeyboardInterrupt
    converted = convert(decoded)
    samples, rows = decoded.samples, converted.rows
    started = min((time for time, who in decoded.execs if who == run.pid), default=-1)
    kept = (samples["pid"][rows] != run.pid) | (samples["time"][rows] >= started)
    kept &= samples["addr"][rows] < _USER_END
    if only_family and run.pid >= 0:
        kept &= np.isin(samples["pid"][rows], list(family(decoded, run.pid)))
    return replace(converted, rows=rows[kept], codes=converted.codes[kept])


def family(decoded: Decoded, pid: int) -> set[int]:
    """The ids of a process and of all that descend from it."""
    children: dict[int, set[int]] = {}
    for one in decoded.threads:
        if one.tid == one.pid and one.parent_pid >= 0 and one.parent_pid != one.pid:
            children.setdefault(one.parent_pid, set()).add(one.pid)
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        one_pid = waiting.pop()
        if one_pid not in found:
            found.add(one_pid)
            waiting += children.get(one_pid, ())
    return found


def recording_of(
    request: RecordRequest, run: PerfRun, converted: Converted, period: int, notes: Sequence[str] = ()
) -> Recording:
    """The recording that a backend hands back."""
    decoded = converted.decoded
    facts = {
        "perf": str(decoded.header.get("version", "")),
        "perf_events": ", ".join(decoded.events),
        "period": "0" if request.choices.freq else str(period),
    }
    counter = PeriodCounter()
    counter.add(decoded.samples, converted.rows, converted.codes)
    facts |= period_facts(counter.periods(decoded.header["attrs"]))
    if request.choices.freq:
        facts["freq"] = str(request.choices.freq)
    throttled = decoded.header["records"].get(_THROTTLE, 0)
    slowed = f"the kernel slowed the sampler down {throttled} times" if throttled else ""
    warnings = [text for text in (run.messages, *decoded.warnings, *notes, slowed) if text]
    if warnings:
        facts["warnings"] = "; ".join(warnings)
    return Recording(
        exit_code=run.exit_code,
        start_ns=run.start_ns,
        blocks=converted.blocks(request.machine),
        threads=converted.threads(),
        losses=losses_of(decoded, run.start_ns),
        notes=facts,
        identity=None if request.argv else converted.identity(),
    )


def losses_of(decoded: Decoded, start_ns: int) -> list[tuple[int, int]]:
    """Where events were lost; what only the totals know of is put at the start."""
    losses = [(max(time, start_ns), events) for time, events in decoded.losses]
    missing = decoded.lost - sum(events for _time, events in losses)
    return [*losses, (start_ns, missing)] if missing > 0 else losses
