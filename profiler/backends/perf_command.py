"""Run a program with `perf record` watching it from its first instruction.

perf attaches to the program before it starts (its child waits just before exec), so the program keeps its own
environment, pid, parent, exit code and signals, and nothing that it loads is loaded into perf.
"""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from numaplan.common import MachineLacksError, UsageError
from numaplan.common.process import find_program, run_program

INSTALL = "apt-get install linux-perf"
_NOT_STARTED = 127
_FLUSH_SECONDS = 120.0
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


def run_recorded(
    argv: Sequence[str], environment: Mapping[str, str], perf_options: Sequence[str], output: Path
) -> PerfRun:
    """Run a program to its end (or Ctrl-C) under `perf record perf_options` and return how it went.

    Raises UsageError when the program cannot be started or the disk fills up, MachineLacksError when perf
    cannot record it (the program is not run then), KeyboardInterrupt when Ctrl-C comes before its start.
    """
    find_program(argv, environment.get("PATH"))
    with _Watch(find_perf(), perf_options, output) as watch:
        watcher = threading.Thread(target=watch.attach, name="perf attach")
        watcher.start()
        try:
            code = run_program(argv, environment, before_exec=watch.hold)
        finally:
            watch.hurry()
            watcher.join()
        messages = watch.stop()
        if _disk_full(output.parent):
            raise UsageError(f"{output.parent}: no space left for the recording", _MORE_SPACE)
        if watch.problem and code == INTERRUPTED:
            raise KeyboardInterrupt
        if watch.problem:
            raise MachineLacksError(f"perf cannot record: {watch.problem}", "see 'nprof doctor'")
        return PerfRun(code, watch.pid, watch.start_ns, messages)


def _disk_full(folder: Path) -> bool:
    """Whether nothing more can be written to a folder: perf then stops without saying so."""
    return shutil.disk_usage(folder).free < _LEAST_SPACE


class _Watch:
    """perf attached to one program, by four pipes: the program's pid and go, perf's control and answer."""

    def __init__(self, perf: str, options: Sequence[str], output: Path) -> None:
        self.pid = -1
        self.start_ns = -1
        self.problem = ""
        self._command = [perf, "record", "-q", *options, "-o", str(output)]
        # Not a file: the disk may be what is full.
        self._log = os.memfd_create("perf-messages")
        self._perf: subprocess.Popen[bytes] | None = None
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
        """No child will come any more: end a wait for its pid."""
        self._close(self._pid_in)

    def attach(self) -> None:
        """Wait for the child, start perf on it, and let the child go once perf counts."""
        try:
            told = os.read(self._pid_out, 32)
            if told:
                self.pid = int(told)
                self._start_perf()
                self.start_ns = time.monotonic_ns()
                os.write(self._go_in, b"g")
        except (OSError, MachineLacksError) as error:
            self.problem = str(error)
        finally:
            self._close(self._go_in)

    def _start_perf(self) -> None:
        control_out, control_in = self._pipe()
        answer_out, answer_in = self._pipe()
        control = ["-D", "-1", f"--control=fd:{control_out},{answer_in}", "-p", str(self.pid)]
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

    def stop(self) -> str:
        """End perf, wait until its file is written, and return what it said."""
        if self._perf is None:
            return ""
        if self._perf.poll() is None:
            self._perf.send_signal(signal.SIGINT)
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
