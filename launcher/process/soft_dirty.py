"""Make a program's touches visible where no hardware samples them, at a bounded price.

The kernel's NUMA balancing makes pages fault now and then (hint faults), but slowly: it begins after a second
and then slows down. Where it keeps soft-dirty bits, writing 4 to /proc/PID/clear_refs write-protects a
process's pages, so that the first write of each page faults once more, and perf tells by whom. Reads of
pages that nobody writes stay unseen by that.
"""

import ctypes
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

FAULT_SECONDS = 1.5e-6  # what one more fault costs a program, about
_SOFT_DIRTY = 1 << 55  # of an entry of /proc/PID/pagemap


class SoftDirtyProbe:
    """Write-protects the pages of processes as often as the price allows.

    share: of the time of all cpus that the faults may take.
    """

    def __init__(self, share: float, cpus: int) -> None:
        self._allowance = share * cpus
        self._last: dict[int, float] = {}
        self._times: dict[int, int] = {}  # protected since the last update_costs()
        self._price: dict[int, float] = {}  # faults that one protection brings
        self.works = soft_dirty_works()

    def write_protect(self, pids: Iterable[int], now: float) -> list[int]:
        """Protect the pages of those processes that have paid for the last time; returns them.

        Until it is known what that costs (`update_costs`), a process is protected once. now: seconds of any
        clock.
        """
        done = [pid for pid in pids if self.works and self._due(pid, now) and _protect(pid)]
        for pid in done:
            self._last[pid] = now
            self._times[pid] = self._times.get(pid, 0) + 1
        return done

    def update_costs(self, faults: Mapping[int, int]) -> None:
        """Learn what protecting costs. faults: of each living process since the last call."""
        for pid, count in faults.items():
            if self._times.get(pid):
                self._price[pid] = count / self._times[pid]
        self._times = {}
        for table in (self._last, self._price):
            for pid in table.keys() - faults.keys():
                del table[pid]

    def _due(self, pid: int, now: float) -> bool:
        if pid not in self._last:
            return True
        return (
            pid in self._price and now - self._last[pid] >= self._price[pid] * FAULT_SECONDS / self._allowance
        )


def _protect(pid: int) -> bool:
    with suppress(OSError):
        fd = os.open(f"/proc/{pid}/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        try:
            return os.write(fd, b"4") == 1
        finally:
            os.close(fd)
    return False


def soft_dirty_works() -> bool:
    """Whether this kernel keeps soft-dirty bits: a page that was just written must have its bit."""
    page = os.sysconf("SC_PAGESIZE")
    memory = bytearray(page * 2)
    memory[page] = 1
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + page
    with suppress(OSError), Path("/proc/self/pagemap").open("rb", buffering=0) as file:
        file.seek(address // page * 8)
        return bool(int.from_bytes(file.read(8), "little") & _SOFT_DIRTY)
    return False
