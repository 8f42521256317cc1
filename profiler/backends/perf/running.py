"""Run a program with `perf record` watching it from its first instruction, or watch running processes.

perf attaches to the program before it starts (its child waits just before exec), so the program keeps its own
environment, pid, parent, exit code and signals, and nothing that it loads is loaded into perf.
"""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from numaplan.common import ASKING, MachineLacksError, UsageError, find_program, interruptible, run_program

from ..base import ProgramStart, check_not_killed
from ..part import RecordedPart, Switch, Turn
from .command import recording_perf, target_of
from .process import INTERRUPTED, TICK_SECONDS, PerfProcess

WHOLE_RUN = RecordedPart()
ALONE = ProgramStart()
_NOT_STARTED = 127
_LEAST_SPACE = 64 << 10


@dataclass(frozen=True)
class PerfRun:
    """One program recorded: its exit code, its pid, CLOCK_MONOTONIC when it was let go, what perf said.

    spans: [from, to) in which perf counted, where only a part of the run is recorded.
    """

    exit_code: int
    pid: int
    start_ns: int
    messages: str
    spans: Sequence[tuple[int, int]] | None = None


def run_recorded(
    argv: Sequence[str],
    environment: Mapping[str, str],
    perf_options: Sequence[str],
    output: Path,
    *,
    machine_wide: bool = False,
    duration: float = 0.0,
    part: RecordedPart = WHOLE_RUN,
    tick: Callable[[int], None] = lambda _pid: None,
    start: ProgramStart = ALONE,
) -> PerfRun:
    """Run a program to its end (or Ctrl-C) under `perf record perf_options` and return how it went.

    machine_wide: record everything that runs meanwhile; duration: stop recording after so many seconds (0:
    never), while the program runs on; part: of the run that is recorded; tick: called now and then with the
    program's pid; start: how it is started. Raises UsageError when the program cannot be started or the disk
    fills up, MachineLacksError when perf cannot record it (the program is not run then), KeyboardInterrupt
    when Ctrl-C comes before its start.
    """
    find_program(argv, environment.get("PATH"))
    recording_perf()  # raises before anything is started
    with _Watch(perf_options, output, machine_wide, part) as watch:
        watcher = threading.Thread(
            target=watch.attach, name="perf attach", args=(duration, tick), daemon=True
        )
        try:
            watcher.start()
            code = run_program(
                argv,
                environment,
                before_exec=watch.hold,
                own=watch.switch.signals,
                pass_interrupts=start.pass_interrupts,
            )
        finally:
            watch.hurry()
            if watcher.is_alive():
                watcher.join()
        if watch.start_ns >= 0:
            start.ended(code)
        messages = watch.perf.stop() if watch.perf else ""
        check_space(output.parent)
        if watch.problem and code == INTERRUPTED:
            raise KeyboardInterrupt
        if watch.problem:
            check_not_killed(argv[0], code)
            problem = f"perf cannot record: {watch.problem}"
            raise MachineLacksError(problem, "see 'nprof doctor'") from watch.problem
        return PerfRun(
            code, watch.pid, watch.start_ns, messages, watch.switch.spans if part.by_switch else None
        )


def run_attached(
    pids: Sequence[int],
    perf_options: Sequence[str],
    output: Path,
    *,
    duration: float = 0.0,
    part: RecordedPart = WHOLE_RUN,
    tick: Callable[[], None] = lambda: None,
) -> PerfRun:
    """Record running processes (all of the machine's without pids) until they end, Ctrl-C or the duration.

    tick: called now and then meanwhile. The exit code is 0, or 130 after Ctrl-C. Raises UsageError when the
    disk fills up, MachineLacksError when perf cannot record.
    """
    # SIGTERM is a batch system's: what was recorded is kept.
    with interruptible(signal.SIGTERM), PerfProcess(perf_options, target_of(pids), str(output)) as perf:
        try:
            perf.enable()
        except MachineLacksError as error:
            check_processes(pids, str(error))
            raise MachineLacksError(f"perf cannot record: {error}", "see 'nprof doctor'") from error
        start_ns = time.monotonic_ns()
        switch = Switch(part, perf.turn)
        with _switching(switch, perf, part):
            code = perf.wait(duration, tick)
        messages = perf.stop()
        check_space(output.parent)
        return PerfRun(code, -1, start_ns, messages, switch.spans if part.by_switch else None)


def check_processes(pids: Sequence[int], said: str) -> None:
    """Raise what is wrong with processes that perf could not record: its words tell of privileges only.

    Raises UsageError for one that ended, MachineLacksError for one of another user.
    """
    for pid in pids:
        try:
            owner = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116
        except OSError:
            owner = -1
        if owner < 0 or (len(pids) == 1 and "No such process" in said):
            raise UsageError(f"process {pid} ended before it was recorded", "give the id of one that runs")
        if os.geteuid() not in (0, owner):
            raise MachineLacksError(
                f"process {pid} is another user's (or not to be looked into): perf may not record it",
                "record it as that user, or as root",
            )


@contextmanager
def _switching(switch: Switch, perf: PerfProcess, part: RecordedPart) -> Iterator[None]:
    """perf, which counts, does so in the part only, as long as the block lasts."""
    if not part.by_switch:
        yield
        return
    perf.turn(Turn.NOT_NOW)
    handlers = {number: lambda *_, call=call: call() for number, call in switch.signals.items()}
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        switch.begin()
        yield
    finally:
        switch.end()
        for number, before in previous.items():
            signal.signal(number, before)


def check_space(folder: Path) -> None:
    """Raise UsageError when nothing more can be written to a folder: perf then stops without saying so."""
    if shutil.disk_usage(folder).free < _LEAST_SPACE:
        raise UsageError(
            f"{folder}: no space left for the recording", "free some, or write to a disk with more"
        )


class _Watch:
    """perf attached to one program, which tells its pid through one pipe and waits for a go at another."""

    def __init__(self, options: Sequence[str], output: Path, machine_wide: bool, part: RecordedPart) -> None:
        self.perf: PerfProcess | None = None
        self.switch = Switch(part, self._turn)
        self._part = part
        self.pid = -1
        self.start_ns = -1
        self.problem: OSError | MachineLacksError | None = None
        self._options = options
        self._output = str(output)
        self._machine_wide = machine_wide
        self._ended = threading.Event()
        self._pid_out, self._pid_in = os.pipe()
        self._go_out, self._go_in = os.pipe()
        self._open = {self._pid_out, self._pid_in, self._go_out, self._go_in}

    def __enter__(self) -> "_Watch":
        return self

    def __exit__(self, *_: object) -> None:
        if self.perf is not None:
            self.perf.close()
        for descriptor in list(self._open):
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            with suppress(OSError):
                os.close(descriptor)

    def hold(self) -> None:
        """In the child: tell the pid, then wait; without a go the program must not run."""
        for number in ASKING:  # which before the start are for this child, too
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        os.close(self._go_in)
        os.write(self._pid_in, f"{os.getpid()}\n".encode())
        if not os.read(self._go_out, 1):
            os._exit(_NOT_STARTED)

    def hurry(self) -> None:
        """No child will come any more, or it has ended: end a wait for its pid or for the duration."""
        self._ended.set()
        self._close(self._pid_in)

    def attach(self, duration: float, tick: Callable[[int], None]) -> None:
        """Wait for the child, start perf on it, and let the child go once perf counts; tick while it runs.

        After `duration` seconds (unless that is 0) perf is stopped, if the child still runs.
        """
        try:
            if pid := os.read(self._pid_out, 32):
                self.pid = int(pid)
                target = target_of(() if self._machine_wide else (self.pid,))
                self.perf = PerfProcess(self._options, target, self._output)
                self.perf.enable()
                if self._part.by_switch:
                    self.perf.turn(Turn.NOT_NOW)
                self.start_ns = time.monotonic_ns()
                if self._part.by_switch:
                    self.switch.begin()
                os.write(self._go_in, b"g")
                self._until_end(self.perf, duration, tick)
        except (OSError, MachineLacksError) as error:
            self.problem = error
        finally:
            self.switch.end()
            self._close(self._go_in)

    def _turn(self, turn: Turn) -> None:
        if self.perf:
            self.perf.turn(turn)

    def _until_end(self, perf: PerfProcess, duration: float, tick: Callable[[int], None]) -> None:
        until = time.monotonic() + duration if duration else float("inf")
        while (left := until - time.monotonic()) > 0:
            if self._ended.wait(min(left, TICK_SECONDS)):
                return
            tick(self.pid)
        perf.interrupt()
