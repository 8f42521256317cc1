"""Sample with perf as it goes: `perf record -o -`, decoded piece by piece."""

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from numaplan.common import MachineLacksError

from ..backends.base import PerfChoices
from ..backends.perf.command import perf_arguments, target_of
from ..backends.perf.process import TO_PIPE, PerfProcess
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
        arguments = perf_arguments(what.events, what.options, what.period, PerfChoices())
        # If it fails it is to say why.
        self._perf = PerfProcess(
            ["--no-quiet", *arguments], target_of(() if what.machine_wide else pids), TO_PIPE
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self._perf.enable()
        except MachineLacksError as error:
            self.close()
            raise MachineLacksError(f"perf cannot watch: {error.what}", _HINT) from error

    @property
    def alive(self) -> bool:
        """Whether perf still runs."""
        return self._perf.alive

    def take(self) -> LiveSamples:
        """The samples since the last call; raises MachineLacksError once perf has died or talks nonsense."""
        # perf writes out its buffers when it is spoken to; else only when they are half full.
        if not self._perf.command("enable", _ANSWER_SECONDS):
            raise MachineLacksError(f"perf ended: {self._perf.last_words() or 'without a message'}", _HINT)
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
        self._perf.kill()
        self._reader.join(_ANSWER_SECONDS)
        self._perf.close()

    def _read(self) -> None:
        """Take perf's output off its hands at once: a full pipe would make it lose samples."""
        with suppress(OSError):
            while data := os.read(self._perf.output, 1 << 18):
                with self._lock:
                    if self._waiting + len(data) > _MOST_PENDING:
                        # Records would be cut: stop here, and let take() see that perf has ended.
                        self._dropped += 1
                        self._perf.kill()
                        return
                    self._pieces.append(data)
                    self._waiting += len(data)
