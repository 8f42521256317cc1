"""Threads that only samples tell of."""

from collections.abc import Sequence

from .family import LARGEST_TID
from .native_accesses import Strangers
from .records import ThreadSpan


class UntoldThreads:
    """Collects them over blocks of samples. told: the threads of the recording's records, a growing list."""

    def __init__(self, told: Sequence[ThreadSpan]) -> None:
        self._told = told
        self._marked = 0
        self._seen: dict[tuple[int, int], ThreadSpan] = {}
        self._strangers = Strangers(LARGEST_TID)

    def begin(self) -> Strangers:
        """To look at the next block with."""
        for span in self._told[self._marked :]:
            if 0 <= span.tid <= LARGEST_TID:
                self._strangers.told[span.tid] = True
        self._marked = len(self._told)
        return self._strangers

    def end(self) -> None:
        """Keep what was found in the block."""
        for key in self._strangers.found():
            self._seen.setdefault(key, ThreadSpan(*key))

    def spans(self) -> tuple[ThreadSpan, ...]:
        """Those that no record told of later either."""
        known = {(span.pid, span.tid) for span in self._told}
        return tuple(span for key, span in self._seen.items() if key not in known)
