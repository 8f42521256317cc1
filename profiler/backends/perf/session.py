"""One recording by perf, from its arguments to the samples: what all backends that use perf share."""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from numaplan.common import MachineLacksError, NumaplanError, UsageError
from numaplan.machine import Machine

from ...perfdata.accesses.blocks import KEPT, Accesses, survey
from ...perfdata.accesses.event_kinds import period_facts
from ...perfdata.decode import Decoded
from ...perfdata.processes.identities import RunRecords, identity_of
from ...perfdata.processes.records import THROTTLE
from ...perfdata.processes.unrecorded import LARGEST_TID
from ...sample_block import SampleBlock, SeenThread
from ..base import WATCHING, Progress, Recording, RecordRequest, check_not_killed
from .command import target_of
from .process import INTERRUPTED
from .progress import Meter
from .running import PerfRun, run_attached, run_recorded


def shown_command(request: RecordRequest, arguments: Sequence[str], machine_wide: bool = False) -> list[str]:
    """A command line that records the same by hand; we start perf on the waiting program instead."""
    choices = request.choices
    attached = choices.pids or machine_wide or choices.all_cpus
    target = target_of(choices.pids) if attached else []
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
            part=request.part,
            tick=lambda pid: progress(meter.line([pid]), WATCHING),
            start=request.start,
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
        part=request.part,
        tick=lambda: progress(f"{target}: {meter.line(choices.pids)}; Ctrl-C ends it", -1.0),
    )


def survey_output(output: Path, messages: str) -> Accesses:
    """Survey what perf wrote; raises MachineLacksError with perf's words when it cannot be read."""
    try:
        return survey(output, KEPT)
    except NumaplanError as error:
        raise MachineLacksError(
            f"perf recorded nothing that can be read: {messages or error.what}", "see 'nprof doctor'"
        ) from error


@contextmanager
def unless_killed(request: RecordRequest, run: PerfRun) -> Iterator[None]:
    """While perf's file is read: an error raises EndedBySignalError where a signal ended the program.

    It may have ended perf, too, which then wrote no whole file.
    """
    try:
        yield
    except NumaplanError:
        if request.argv:
            check_not_killed(request.argv[0], run.exit_code)
        raise


class OwnBlocks:
    """The accesses to user memory, without those of our own child before it became the program.

    Read from perf's file each time that they are asked for. members: processes to keep (None: all).
    """

    def __init__(self, found: Accesses, machine: Machine, run: PerfRun, members: Set[int] | None) -> None:
        self._found = found
        self._machine = machine
        self._pid = run.pid
        self._started = min((time for time, pid in found.facts.execs if pid == run.pid), default=-1)
        self._members = None if members is None else list(members)

    def pids(self) -> set[int]:
        """The processes that have such accesses."""
        found = set[int]()
        for block in self:
            found.update(block.pid[np.flatnonzero(np.diff(block.pid, prepend=-1))].tolist())
        return found

    def __iter__(self) -> Iterator[SampleBlock]:
        for block in self._found.blocks(self._machine, self._found.start):
            kept = (block.pid != self._pid) | (block.time_ns >= self._started)
            if self._members is not None:
                kept &= np.isin(block.pid, self._members)
            yield block if kept.all() else block.chosen(kept)


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
    request: RecordRequest,
    run: PerfRun,
    found: Accesses,
    period: int,
    notes: Sequence[str] = (),
    only_family: bool = False,
) -> Recording:
    """The recording that a backend hands back.

    only_family: leave out all but the program and its descendants. Raises KeyboardInterrupt when Ctrl-C came
    before the program's start.
    """
    facts = found.facts
    unseen = run.spans is not None  # the start of the program need not have been recorded
    if (
        run.exit_code == INTERRUPTED
        and run.pid >= 0
        and not unseen
        and run.pid not in {pid for _time, pid in facts.execs}
    ):
        raise KeyboardInterrupt
    members = family(facts, run.pid) if only_family and run.pid >= 0 else None
    blocks = OwnBlocks(found, request.machine, run, members)
    pids = blocks.pids()
    records = RunRecords(facts.threads, facts.maps, facts.execs, same_host=True)
    return Recording(
        exit_code=run.exit_code,
        start_ns=run.start_ns,
        blocks=blocks,
        threads=[
            SeenThread(one.pid, one.tid, one.name, one.parent_tid, one.start, one.end)
            for one in facts.threads
            if one.pid in pids and 0 <= one.tid <= LARGEST_TID
        ],
        losses=facts.losses_from(run.start_ns),
        notes=_notes(request, run, found, period, notes),
        identity=None if request.argv else identity_of(records, pids)[0],
        spans=run.spans,
        calls=found.calls.blocks(0),
    )


def _notes(
    request: RecordRequest, run: PerfRun, found: Accesses, period: int, notes: Sequence[str]
) -> dict[str, str]:
    """Facts for the trace."""
    header = found.facts.header
    facts = {
        "perf": str(header.get("version", "")),
        "perf_events": ", ".join(found.facts.events),
        "period": "0" if request.choices.freq else str(period),
        **period_facts(found.periods),
    }
    if request.choices.freq:
        facts["freq"] = str(request.choices.freq)
    throttled = header["records"].get(THROTTLE, 0)  # when it slowed a sampler down
    slowed = f"the kernel slowed the sampler down {throttled} times" if throttled else ""
    warnings = [text for text in (run.messages, *found.facts.warnings, *notes, slowed) if text]
    if warnings:
        facts["warnings"] = "; ".join(warnings)
    return facts
