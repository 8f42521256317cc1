"""Run a program with `perf record` watching it from its first instruction.

perf attaches to the program before it starts (its child waits just before exec), so the program keeps its own
environment, pid, parent, exit code and signals, and nothing that it loads is loaded into perf.
"""

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from numaplan.common import MachineLacksError, UsageError, find_program, run_program

from ..base import PerfChoices

INSTALL = "apt-get install linux-perf"
# No build ids, which our library logs; no BPF programs, for which perf would take a second longer to end.
_PLAIN = ("-B", "-N", "--no-bpf-event")
_OLDEST = (5, 10)  # `perf record --control` that answers, by descriptors
_NOT_STARTED = 127
_FLUSH_SECONDS = 120.0
_TICK_SECONDS = 0.5
INTERRUPTED = 128 + signal.SIGINT
_LEAST_SPACE = 64 << 10
_MORE_SPACE = "free some, or write to a disk with more"


@dataclass(frozen=True)
class PerfRun:
    """One program recorded: its exit code, its pid, CLOCK_MONOTONIC when it was let go, what perf said."""

    exit_code: int
    pid: int
    start_ns: int
    messages: str


def find_perf() -> str:
    """The perf command; raises MachineLacksError if there is none."""
    found = shutil.which("perf")
    if found is None:
        raise MachineLacksError("perf is not installed", INSTALL)
    return found


def recording_perf() -> str:
    """The perf command, which can be started on a waiting program; raises MachineLacksError if it cannot."""
    return _checked(find_perf())


@cache
def _checked(found: str) -> str:
    try:
        told = subprocess.run(
            [found, "--version"], capture_output=True, text=True, errors="replace", timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineLacksError(f"{found} does not run: {error}", INSTALL) from error
    if told.returncode:  # distributions install a script that looks for the running kernel's own perf
        lines = (line.strip() for line in (told.stderr + told.stdout).splitlines())
        words = next(filter(None, lines), f"it ends with {told.returncode}")
        raise MachineLacksError(f"{found} does not run: {words[:120]}", INSTALL)
    version = re.search(r"(\d{1,4})\.(\d{1,4})", told.stdout)
    if version and (int(version[1]), int(version[2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise MachineLacksError(
            f"perf {version[0]} is too old: it has no --control", f"install perf {oldest} or later: {INSTALL}"
        )
    return found


def perf_arguments(
    events: Sequence[str], options: Sequence[str], period: int, choices: PerfChoices
) -> list[str]:
    """What comes after `perf record`, but for the target and the output."""
    rate = ["-F", str(choices.freq)] if choices.freq else ["-c", str(period)]
    limit = ["--max-size", f"{choices.max_bytes}B"] if choices.max_bytes else []
    named = [word for event in choices.events or events for word in ("-e", event)]
    return [*_PLAIN, *named, *rate, "--sample-cpu", *options, *limit]


def run_recorded(
    argv: Sequence[str],
    environment: Mapping[str, str],
    perf_options: Sequence[str],
    output: Path,
    *,
    machine_wide: bool = False,
    duration: float = 0.0,
    tick: Callable[[int], None] = lambda _pid: None,
) -> PerfRun:
    """Run a program to its end (or Ctrl-C) under `perf record perf_options` and return how it went.

    machine_wide: record everything that runs meanwhile; duration: stop recording after so many seconds (0:
    never), while the program runs on; tick: called now and then with the program's pid. Raises UsageError
    when the program cannot be started or the disk fills up, MachineLacksError when perf cannot record it (the
    program is not run then), KeyboardInterrupt when Ctrl-C comes before its start.
    """
    find_program(argv, environment.get("PATH"))
    with _Watch(recording_perf(), perf_options, output, machine_wide) as watch:
        watcher = threading.Thread(target=watch.attach, name="perf attach", args=(duration, tick))
        watcher.start()
        try:
            code = run_program(argv, environment, before_exec=watch.hold)
        finally:
            watch.hurry()
            watcher.join()
        messages = watch.stop()
        check_space(output.parent)
        if watch.problem and code == INTERRUPTED:
            raise KeyboardInterrupt
        if watch.problem:
            raise MachineLacksError(f"perf cannot record: {watch.problem}", "see 'nprof doctor'")
        return PerfRun(code, watch.pid, watch.start_ns, messages)


def run_attached(
    pids: Sequence[int],
    perf_options: Sequence[str],
    output: Path,
    *,
    duration: float = 0.0,
    tick: Callable[[], None] = lambda: None,
) -> PerfRun:
    """Record running processes (all of the machine's without pids) until they end, Ctrl-C or the duration.

    tick: called now and then meanwhile. The exit code is 0, or 130 after Ctrl-C. Raises UsageError when the
    disk fills up, MachineLacksError when perf cannot record.
    """
    target = ["-p", ",".join(map(str, pids))] if pids else ["-a"]
    with (
        _Watch(recording_perf(), perf_options, output, machine_wide=not pids) as watch,
        _termination_as_interrupt(),
    ):
        try:
            watch.start(target)
        except (OSError, MachineLacksError) as error:
            raise MachineLacksError(f"perf cannot record: {error}", "see 'nprof doctor'") from error
        code = watch.wait(duration, tick)
        messages = watch.stop()
        check_space(output.parent)
        return PerfRun(code, -1, watch.start_ns, messages)


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """A batch system's SIGTERM ends a recording as Ctrl-C does, which keeps it."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def check_space(folder: Path) -> None:
    """Raise UsageError when nothing more can be written to a folder: perf then stops without saying so."""
    if _disk_full(folder):
        raise UsageError(f"{folder}: no space left for the recording", _MORE_SPACE)


def _disk_full(folder: Path) -> bool:
    """Whether nothing more can be written to a folder: perf then stops without saying so."""
    return shutil.disk_usage(folder).free < _LEAST_SPACE


class _Watch:
    """perf attached to one program, by four pipes: the program's pid and go, perf's control and answer."""

    def __init__(self, perf: str, options: Sequence[str], output: Path, machine_wide: bool) -> None:
        self._machine_wide = machine_wide
        self.pid = -1
        self.start_ns = -1
        self.problem = ""
        self._command = [perf, "record", "-q", *options, "-o", str(output)]
        # Not a file: the disk may be what is full.
        self._log = os.memfd_create("perf-messages")
        self._perf: subprocess.Popen[bytes] | None = None
        self._ended = threading.Event()
        self._fds: set[int] = {self._log}
        self._pid_out, self._pid_in = self._pipe()
        self._go_out, self._go_in = self._pipe()

    def __enter__(self) -> "_Watch":
        return self

    def __exit__(self, *_: object) -> None:
        if self._perf is not None and self._perf.poll() is None:
            self._perf.kill()
            self._perf.wait()
        for fd in list(self._fds):
            self._close(fd)

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._fds.update(ends)
        return ends

    def _close(self, fd: int) -> None:
        self._fds.discard(fd)
        with suppress(OSError):
            os.close(fd)

    def hold(self) -> None:
        """In the child: tell the pid, then wait; without a go the program must not run."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C before the start is for this child, too
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
            told = os.read(self._pid_out, 32)
            if told:
                self.pid = int(told)
                self.start(["-a"] if self._machine_wide else ["-p", str(self.pid)])
                os.write(self._go_in, b"g")
                self._until_end(duration, tick)
        except (OSError, MachineLacksError) as error:
            self.problem = str(error)
        finally:
            self._close(self._go_in)

    def _until_end(self, duration: float, tick: Callable[[int], None]) -> None:
        until = time.monotonic() + duration if duration else float("inf")
        while (left := until - time.monotonic()) > 0:
            if self._ended.wait(min(left, _TICK_SECONDS)):
                return
            tick(self.pid)
        self._interrupt()

    def start(self, target: Sequence[str]) -> None:
        """Start perf on a target and return once it counts; raises MachineLacksError when it does not."""
        control_out, control_in = self._pipe()
        answer_out, answer_in = self._pipe()
        control = ["-D", "-1", f"--control=fd:{control_out},{answer_in}", *target]
        # Its own group: Ctrl-C is for the program, and perf must outlive it to write what it saw.
        self._perf = subprocess.Popen(
            [*self._command, *control],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "LC_ALL": "C"},
            pass_fds=(control_out, answer_in),
            process_group=0,
        )
        self._close(control_out)
        self._close(answer_in)
        with suppress(BrokenPipeError):
            os.write(control_in, b"enable\n")
        if not os.read(answer_out, 16).startswith(b"ack"):
            self._perf.wait()
            raise MachineLacksError(self._last_words() or "it ended at once")
        self.start_ns = time.monotonic_ns()

    def wait(self, duration: float, tick: Callable[[], None]) -> int:
        """Wait for perf to end by itself, at most `duration` seconds if that is not 0; 130 after Ctrl-C."""
        until = time.monotonic() + duration if duration else float("inf")
        try:
            while self._perf is not None and (left := until - time.monotonic()) > 0:
                with suppress(subprocess.TimeoutExpired):
                    self._perf.wait(min(left, _TICK_SECONDS))
                    break
                tick()
        except KeyboardInterrupt:
            return INTERRUPTED
        return 0

    def _interrupt(self) -> None:
        if self._perf is not None and self._perf.poll() is None:
            self._perf.send_signal(signal.SIGINT)

    def stop(self) -> str:
        """End perf, wait until its file is written, and return what it said."""
        if self._perf is None:
            return ""
        self._interrupt()
        try:
            self._perf.wait(_FLUSH_SECONDS)
        except subprocess.TimeoutExpired:
            self._perf.kill()
            self._perf.wait()
        return self._last_words()

    def _last_words(self) -> str:
        text = os.pread(self._log, 4096, 0).decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines()]
        return " ".join(line for line in lines if line and not line.startswith("["))[:300]
