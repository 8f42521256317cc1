"""The times of a recording: the guest's and the host's clock, and the program's accesses, which are its time.

A nanosecond is an access, as in emulation, so how busy the host was does not show. Samples bear the host's
time; what the preload library logs, and the kernel traces, bears the guest's. Both clocks tick by the host's
time-stamp counter, so two moments that are known by both tell the rest.
"""

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]
Moments = tuple[tuple[int, int], tuple[int, int]]


class GuestClock:
    """From times of the guest's clock to the host's (ns); moments: two, each by both."""

    def __init__(self, moments: Moments) -> None:
        (self._guest, self._host), (guest_end, host_end) = moments
        passed = guest_end - self._guest
        self._rate = (host_end - self._host) / passed if passed > 0 else 1.0

    def host(self, guest_ns: Times) -> Times:
        """Of the same shape."""
        answer: Times = self._host + np.rint((guest_ns - self._guest) * self._rate).astype(np.int64)
        return answer

    def guest(self, host_ns: Times) -> Times:
        """The other way round."""
        answer: Times = self._guest + np.rint((host_ns - self._host) / self._rate).astype(np.int64)
        return answer


class AccessLine:
    """From the host's clock to the accesses that the program had made by then.

    moments: of samples, in any order; each: accesses that one of them stands for; total: all accesses.
    """

    def __init__(self, moments: Times, each: int, total: int) -> None:
        self._moments = np.sort(moments)
        count = len(self._moments)
        self._line = np.minimum(np.arange(count, dtype=np.int64) * each, total)
        self._total = total

    def __call__(self, host_ns: Times) -> Times:
        """Of the same shape; before the first sample 0, after the last all accesses."""
        if not len(self._moments):
            return np.zeros(len(host_ns), np.int64)
        place = np.searchsorted(self._moments, host_ns, side="left")
        at = np.minimum(place, len(self._moments) - 1)
        answer: Times = np.where(place < len(self._moments), self._line[at], self._total)
        return answer
