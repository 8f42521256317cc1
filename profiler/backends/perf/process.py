"""A running `perf record`, spoken to through two pipes."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from numaplan.common import MachineLacksError

from ..part import Turn
from .command import recording_perf

INTERRUPTED = 128 + signal.SIGINT
TICK_SECONDS = 0.5
TO_PIPE = "-"
_FLUSH_SECONDS = 120.0
_ANSWER_SECONDS = 60.0  # of one that is about to end there is none


class PerfProcess:
    """perf on a target (`-a`, or `-p` and pids), started but not counting until `enable`.

    output: a file, or TO_PIPE. Raises MachineLacksError when there is no perf to start.
    """

    def __init__(self, arguments: Sequence[str], target: Sequence[str], output: str) -> None:
        command = [recording_perf(), "record", "-q", *arguments, "-o", output]
        command_out, self._commands = os.pipe()
        self._answers, answer_in = os.pipe()
        # Not a file: the disk may be what is full.
        self._messages = os.memfd_create("perf-messages")
        try:
            self._perf = subprocess.Popen(
                [*command, "-D", "-1", f"--control=fd:{command_out},{answer_in}", *target],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if output == TO_PIPE else self._messages,
                stderr=self._messages,
                env={**os.environ, "LC_ALL": "C", "LD_PRELOAD": ""},
                pass_fds=(command_out, answer_in),
                # Its own group: Ctrl-C is for the program, and perf must outlive it to write what it saw.
                process_group=0,
            )
        finally:
            os.close(command_out)
            os.close(answer_in)

    def __enter__(self) -> "PerfProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._perf.poll() is None

    @property
    def output(self) -> int:
        """The pipe that it writes to."""
        assert self._perf.stdout is not None
        return self._perf.stdout.fileno()

    def enable(self) -> None:
        """Return once it counts; raises MachineLacksError with its words when it does not."""
        if not self.command("enable"):
            self._perf.wait()
            raise MachineLacksError(self.last_words() or "it ended at once")

    def turn(self, turn: Turn) -> None:
        """Have it count or not."""
        self.command("enable" if turn is Turn.NOW else "disable", _ANSWER_SECONDS)

    def command(self, word: str, seconds: float | None = None) -> bool:
        """Give it a command and wait for the answer; False when it is gone or does not answer in time."""
        try:
            os.write(self._commands, f"{word}\n".encode())
            ready, _, _ = select.select([self._answers], [], [], seconds)
            return bool(ready) and os.read(self._answers, 64).startswith(b"ack")
        except (OSError, ValueError):
            return False

    def wait(self, duration: float, tick: Callable[[], None]) -> int:
        """Wait for its end, at most `duration` seconds if that is not 0; returns 130 after Ctrl-C, else 0."""
        until = time.monotonic() + duration if duration else float("inf")
        try:
            while (left := until - time.monotonic()) > 0:
                with suppress(subprocess.TimeoutExpired):
                    self._perf.wait(min(left, TICK_SECONDS))
                    break
                tick()
        except KeyboardInterrupt:
            return INTERRUPTED
        return 0

    def interrupt(self) -> None:
        """Have it stop counting and write its file."""
        if self.alive:
            self._perf.send_signal(signal.SIGINT)

    def stop(self) -> str:
        """End it, wait until its file is written, and return what it said."""
        self.interrupt()
        with suppress(subprocess.TimeoutExpired):
            self._perf.wait(_FLUSH_SECONDS)
        self.kill()
        return self.last_words()

    def kill(self) -> None:
        """End it at once."""
        if self.alive:
            self._perf.kill()
            self._perf.wait()

    def last_words(self) -> str:
        """Its messages, but for its own statistics."""
        with suppress(OSError):
            lines = os.pread(self._messages, 4096, 0).decode("utf-8", "replace").splitlines()
            return " ".join(line.strip() for line in lines if line.strip() and line.strip()[0] != "[")[:300]
        return ""

    def close(self) -> None:
        """End it and give everything back."""
        self.kill()
        if self._perf.stdout:
            self._perf.stdout.close()
        for descriptor in (self._commands, self._answers, self._messages):
            with suppress(OSError):
                os.close(descriptor)
