"""Sample with perf as it goes: `perf record -o -`, decoded piece by piece."""

import os
import select
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from numaplan.common import MachineLacksError

from ..backends.base import PerfChoices
from ..backends.perf.command import perf_arguments, recording_perf
from ..perfdata.file.source import PerfDataError
from ..perfdata.stream import StreamDecoder
from .samples import LiveEvents, LiveSamples, live_samples

_HINT = "see 'nprof doctor'"
_ANSWER_SECONDS = 10.0
_SETTLE_SECONDS = 0.05
_MOST_PENDING = 256 << 20  # bytes between two calls of take(); more is dropped and counted as one loss


class PerfSampler:
    """perf on some processes and all that they start; `take` gives what came since it was last called.

    Started on our own process, it sees every thread of what we start afterwards from its first instruction.
    """

    def __init__(self, what: LiveEvents, pids: Sequence[int]) -> None:
        """Start perf and return once it counts; raises MachineLacksError with its words when it does not."""
        self.what = what
        self._decoder = StreamDecoder()
        self._lock = threading.Lock()
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._dropped = 0
        command_out, self._commands = os.pipe()
        self._answers, answer_in = os.pipe()
        arguments = perf_arguments(what.events, what.options, what.period, PerfChoices())
        target = ["-a"] if what.machine_wide else ["-p", ",".join(map(str, pids))]
        control = ["-D", "-1", f"--control=fd:{command_out},{answer_in}"]
        self._log = os.memfd_create("perf-messages")
        try:
            self._perf = subprocess.Popen(
                [recording_perf(), "record", "-q", *arguments, "-o", "-", *control, *target],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log,
                env={**os.environ, "LC_ALL": "C", "LD_PRELOAD": ""}, pass_fds=(command_out, answer_in),
                process_group=0,  # Ctrl-C is for the program
            )  # fmt: skip
        finally:
            os.close(command_out)
            os.close(answer_in)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._command("enable", None):
            self._perf.wait()
            words = self._last_words() or "it ended at once"
            self.close()
            raise MachineLacksError(f"perf cannot watch: {words}", _HINT)

    @property
    def alive(self) -> bool:
        """Whether perf still runs."""
        return self._perf.poll() is None

    def take(self) -> LiveSamples:
        """The samples since the last call; raises MachineLacksError once perf has died or talks nonsense."""
        # perf writes out its buffers when it is spoken to; else only when they are half full.
        if not self._command("enable", _ANSWER_SECONDS):
            raise MachineLacksError(f"perf ended: {self._last_words() or 'without a word'}", _HINT)
        time.sleep(_SETTLE_SECONDS)
        with self._lock:
            data, dropped = b"".join(self._pieces), self._dropped
            self._pieces, self._waiting, self._dropped = [], 0, 0
        try:
            self._decoder.feed(data)
            piece = self._decoder.take()
        except PerfDataError as error:
            raise MachineLacksError(f"perf's samples cannot be read: {error.what}", _HINT) from error
        return live_samples(piece.samples, piece.events, piece.lost + dropped, self.what.unit_ns)

    def close(self) -> None:
        """End perf; what it has not given yet is gone."""
        if self._perf.poll() is None:
            self._perf.terminate()
            try:
                self._perf.wait(_ANSWER_SECONDS)
            except subprocess.TimeoutExpired:
                self._perf.kill()
                self._perf.wait()
        self._reader.join(_ANSWER_SECONDS)
        if self._perf.stdout:
            self._perf.stdout.close()
        for fd in (self._commands, self._answers, self._log):
            with suppress(OSError):
                os.close(fd)

    def _read(self) -> None:
        """Take perf's output off its hands at once: a full pipe would make it lose samples."""
        assert self._perf.stdout is not None
        fd = self._perf.stdout.fileno()
        with suppress(OSError):
            while data := os.read(fd, 1 << 18):
                with self._lock:
                    if self._waiting + len(data) > _MOST_PENDING:
                        # Records would be cut: stop here, and let take() see that perf has ended.
                        self._dropped += 1
                        self._perf.kill()
                        return
                    self._pieces.append(data)
                    self._waiting += len(data)

    def _command(self, word: str, seconds: float | None) -> bool:
        """Tell perf something and wait for its answer; False when it is gone or does not answer."""
        try:
            os.write(self._commands, f"{word}\n".encode())
            ready, _, _ = select.select([self._answers], [], [], seconds)
            return bool(ready) and os.read(self._answers, 64).startswith(b"ack")
        except (OSError, ValueError):
            return False

    def _last_words(self) -> str:
        with suppress(OSError):
            lines = os.pread(self._log, 4096, 0).decode("utf-8", "replace").split("\n")
            return " ".join(line.strip() for line in lines if line.strip() and line[0] != "[")[:300]
        return ""
