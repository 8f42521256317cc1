"""The progress of an emulated recording, read from the files that the plugin is writing."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from numaplan.common import UsageError

from ..live_line import Rate, live_line
from .spool import read_process

_TICK_SECONDS = 0.5
_SAMPLE_BYTES = 16
_MOST_PROCESSES = 256  # looked into; a job of more shows no losses and threads


class SpoolMeter:
    """Samples (as far as full windows were written), size, losses and threads of a folder of spool files."""

    def __init__(self, workdir: Path) -> None:
        self._workdir = workdir
        self._rate = Rate()

    def line(self) -> str:
        """One line for people."""
        size = sum(_size(path) for path in self._workdir.glob("emulate-*.samples"))
        lost = threads = 0
        for path in list(self._workdir.glob("emulate-*.threads"))[:_MOST_PROCESSES]:
            try:
                records = read_process(path).threads
            except (UsageError, OSError):  # it is only just being made
                continue
            lost += int(records["lost"].sum())
            threads += int((records["end_ns"] < 0).sum())
        samples = size // _SAMPLE_BYTES
        return live_line(self._rate.of(samples), samples, size, lost, threads)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


@contextmanager
def ticking(tick: Callable[[], None]) -> Iterator[None]:
    """Call `tick` now and then, from a thread of its own, until the block ends."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(_TICK_SECONDS):
            tick()

    ticker = threading.Thread(target=run, name="live line", daemon=True)
    try:
        ticker.start()
        yield
    finally:
        ended.set()
        if ticker.is_alive():
            ticker.join()
