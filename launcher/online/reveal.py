"""Make a program's touches visible where no hardware samples them, at a bounded price.

The kernel's NUMA balancing makes pages fault now and then (hint faults), but slowly: it begins after a second
and then slows down. Where it keeps soft-dirty bits, writing 4 to /proc/PID/clear_refs write-protects a
process's pages, so that the first write of each page faults once more, and perf tells by whom. Reads of
pages that nobody writes stay unseen by that.
"""

import ctypes
import os
from contextlib import suppress
from pathlib import Path

FAULT_SECONDS = 1.5e-6  # what one more fault costs a program, about
_SOFT_DIRTY = 1 << 55  # of an entry of /proc/PID/pagemap


class Revealer:
    """Write-protects the pages of processes as often as the price allows.

    share: of the time of all cpus that the faults may take.
    """

    def __init__(self, share: float, cpus: int) -> None:
        self._allowance = share * cpus
        self._last: dict[int, float] = {}
        self._debt: dict[int, float] = {}
        self.works = soft_dirty_works()

    def reveal(self, pids: list[int], now: float, faults: dict[int, int]) -> list[int]:
        """Protect the pages of those processes whose last faults are paid for; returns them.

        now: seconds of any clock; faults: by process, how many came since the last call.
        """
        if not self.works:
            return []
        self._last = {pid: when for pid, when in self._last.items() if pid in pids}
        debts = {pid: self._debt.get(pid, 0.0) + faults.get(pid, 0) * FAULT_SECONDS for pid in pids}
        paid = [pid for pid in pids if debts[pid] <= self._allowance * (now - self._last.get(pid, -1e9))]
        done = [pid for pid in paid if _protect(pid)]
        self._last.update(dict.fromkeys(done, now))
        self._debt = {pid: 0.0 if pid in done else debt for pid, debt in debts.items()}
        return done


def _protect(pid: int) -> bool:
    with suppress(OSError):
        fd = os.open(f"/proc/{pid}/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        try:
            return os.write(fd, b"4") == 1
        finally:
            os.close(fd)
    return False


def soft_dirty_works() -> bool:
    """Whether this kernel keeps soft-dirty bits: a page of ours that was just written must have its bit."""
    page = os.sysconf("SC_PAGESIZE")
    probe = bytearray(page * 2)
    probe[page] = 1
    address = ctypes.addressof(ctypes.c_char.from_buffer(probe)) + page
    with suppress(OSError), Path("/proc/self/pagemap").open("rb", buffering=0) as file:
        file.seek(address // page * 8)
        return bool(int.from_bytes(file.read(8), "little") & _SOFT_DIRTY)
    return False
