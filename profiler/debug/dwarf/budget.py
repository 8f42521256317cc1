"""How much work a reader of debug information may do: files say what they like."""

import time

MOST_SECONDS = 10.0  # of the processor, for all files of a trace
_SECONDS_A_MB = 1.0  # more for large ones: reading all of one takes two thirds of that
_MOST_MORE = 180.0
_STEPS = 4096


class TooMuchError(Exception):
    """A file would take more time than it is worth, or is not what it says."""


class Budget:
    """Processor time for one trace's names; what is not found by then has none."""

    def __init__(self, seconds: float = MOST_SECONDS) -> None:
        self._end = time.process_time() + seconds
        self._left = _STEPS

    def add_for(self, size: int) -> None:
        """Allow what a file with so many bytes of debug information may take."""
        self._end += min(_SECONDS_A_MB * size / 1e6, _MOST_MORE)

    def step(self, count: int = 1) -> None:
        """Note some work done; raises TooMuchError where no time is left."""
        self._left -= count
        if self._left <= 0:
            self._left = _STEPS
            self.check()

    def check(self) -> None:
        """Raise TooMuchError where no time is left."""
        if time.process_time() > self._end:
            raise TooMuchError("no time left")
