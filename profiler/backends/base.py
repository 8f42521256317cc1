"""What a recording backend is: a way to see which thread touched which address.

A backend starts the program and yields blocks of samples keyed by (pid, tid) with CLOCK_MONOTONIC times;
`profiler/recording/assemble.py` turns them into a trace (thread and region identities, times from the start).
"""

import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from numaplan.common import NumaplanError, ended_by
from numaplan.machine import Machine

from ..call_block import CallBlock
from ..identity.records import Identity
from ..messages.message import Messages
from ..page_use_block import PageUseBlock
from ..running_block import RunningBlock
from ..sample_block import SampleBlock, SeenThread
from ..transfer_block import TransferBlock
from .part import RecordedPart

IDENTITY = "identity"  # the folder for the preload library's logs, in that of a recording


@dataclass(frozen=True)
class Capability:
    """Whether a backend works here: `reason` says why (not), `hint` is the exact command that gets it."""

    ok: bool
    reason: str
    hint: str = ""


class EndedBySignalError(NumaplanError):
    """A signal ended the program before anything was recorded; its exit code, 128+signal, is ours."""

    def __init__(self, program: str, exit_code: int, number: signal.Signals) -> None:
        super().__init__(f"{program}: {number.name} ended it before anything was recorded", "run it again")
        self.exit_code = exit_code


def check_not_killed(program: str, exit_code: int) -> None:
    """Raise EndedBySignalError where that may be why nothing was recorded."""
    if number := ended_by(exit_code):
        raise EndedBySignalError(program, exit_code, number)


@dataclass(frozen=True)
class PerfChoices:
    """What only recording with perf can do; the defaults ask for nothing.

    freq: samples a second instead of a period; duration: seconds, 0 is to the end; pids: running processes
    to watch instead of starting a program; all_cpus: whatever runs; max_bytes: of perf's file, 0 is no limit;
    events: perf's own names instead of the backend's; phys: physical addresses, or an error; call_graph: the
    calls that samples are in.
    """

    freq: int = 0
    duration: float = 0.0
    pids: tuple[int, ...] = ()
    all_cpus: bool = False
    max_bytes: int = 0
    events: tuple[str, ...] = ()
    phys: bool = False
    call_graph: bool = False

    def named(self) -> list[str]:
        """The options of `nprof record` that were given."""
        given = {
            "--freq": self.freq,
            "--duration": self.duration,
            "--pid": self.pids,
            "--all-cpus": self.all_cpus,
            "--max-size": self.max_bytes,
            "--events": self.events,
            "--phys": self.phys,
            "--call-graph": self.call_graph,
        }
        return [option for option, value in given.items() if value]


def _unnoticed(_code: int) -> None:
    pass


@dataclass(frozen=True)
class ProgramStart:
    """For those to whom the program matters more than its recording.

    ended: called with the exit code of a program that did run, before anything can go wrong with what was
    recorded; pass_interrupts: a SIGINT that a process sends to us is passed on, as other signals are.
    """

    ended: Callable[[int], None] = _unnoticed
    pass_interrupts: bool = False


@dataclass(frozen=True)
class RecordRequest:
    """What to record and how.

    argv: empty to watch what runs already; workdir: an empty private folder for intermediate files, removed
    by the caller; environment: the program's whole environment, which already loads the preload library;
    period: in accesses per sample; choices: for backends that use perf; run: which of several runs, from 0;
    start: how the program is started and its end is told.
    """

    argv: Sequence[str]
    workdir: Path
    machine: Machine
    environment: Mapping[str, str]
    period: int = 1000
    options: Mapping[str, str] = field(default_factory=dict)
    choices: PerfChoices = field(default_factory=PerfChoices)
    run: int = 0
    part: RecordedPart = field(default_factory=RecordedPart)
    start: ProgramStart = field(default_factory=ProgramStart)

    @property
    def identity_dir(self) -> Path:
        """Where the preload library logs."""
        return self.workdir / IDENTITY


@dataclass(frozen=True)
class Recording:
    """What a backend brought back. `exit_code` is the program's own (128+signal when it died of one).

    start_ns: CLOCK_MONOTONIC when recording began; losses: (time_ns, events lost); counters: (time_ns, pid,
    tid, event, value); notes: further facts for the trace's meta table, by name; identity: where the preload
    library could not be (processes that ran already), what the backend knows instead; spans: [from, to) by
    CLOCK_MONOTONIC that were recorded, where that is not all and the times do not say it already; transfers:
    all of them, None where not every access is seen; page_use: the same of who uses which page;
    counted_spans: whether these two are of the spans alone; messages: between ranks;
    calls: that samples are in; running: which threads could run, now and then.
    """

    exit_code: int
    start_ns: int
    blocks: Iterable[SampleBlock]
    threads: Sequence[SeenThread] = ()
    losses: Sequence[tuple[int, int]] = ()
    counters: Sequence[tuple[int, int, int, str, float]] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    identity: Identity | None = None
    spans: Sequence[tuple[int, int]] | None = None
    transfers: Iterable[TransferBlock] | None = None
    page_use: Iterable[PageUseBlock] | None = None
    counted_spans: bool = False
    messages: Sequence[Messages] = ()
    calls: Iterable[CallBlock] = ()
    running: Iterable[RunningBlock] = ()


# Called now and then while recording or converting: (what is being done, share done 0..1 or -1 when unknown;
# WATCHING: what a recording brought so far, while the recorded program has the terminal).
Progress = Callable[[str, float], None]
WATCHING = -2.0


class Backend(Protocol):
    """One way of recording. Stateless: everything comes with the request."""

    name: str

    def available(self, machine: Machine) -> Capability:
        """Whether it works on this machine, without starting anything long."""

    def command(self, request: RecordRequest) -> list[str]:
        """A command line that records the same, for people; raises what record() would before it starts."""

    def record(self, request: RecordRequest, progress: Progress) -> Recording:
        """Run the program to its end (or Ctrl-C) and return what was seen.

        Raises UsageError (no such program), MachineLacksError.
        """
