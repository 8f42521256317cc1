"""How fast this processor's time-stamp counter runs, which is the guest's, too (QEMU hands it through).

The guest's kernel would find out by itself at boot, against an emulated timer; on a crowded host it errs by
several times, and its seconds are then no seconds.
"""

import ctypes
import mmap
import platform
import time
from collections.abc import Callable
from contextlib import suppress

_READ = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl rdx, 32; or rax, rdx; ret
_SECONDS = 0.02
_TRIES = 20  # of which the one that was interrupted least counts


def host_tick_khz() -> int | None:
    """Ticks a millisecond; None where this is no x86-64, or generated code may not run."""
    if platform.machine() != "x86_64":
        return None
    with suppress(OSError, ValueError), mmap.mmap(-1, mmap.PAGESIZE) as data:
        data.write(_READ)
        return _rate(data)
    return None


def _rate(code: mmap.mmap) -> int:
    place = ctypes.c_char.from_buffer(code)
    address = ctypes.addressof(place)
    libc = ctypes.CDLL(None, use_errno=True)
    executable = mmap.PROT_READ | mmap.PROT_EXEC
    failed = libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), ctypes.c_int(executable))
    del place  # the page can be closed only when nobody refers to it
    if failed:
        raise OSError(ctypes.get_errno(), "generated code may not run")
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(address)
    ticks, then = _both(read)
    time.sleep(_SECONDS)
    more_ticks, now = _both(read)
    return round((more_ticks - ticks) / (now - then) * 1e6)


def _both(read: Callable[[], int]) -> tuple[int, float]:
    """The counter, and ns of CLOCK_MONOTONIC at the same moment."""
    found = []
    for _ in range(_TRIES):
        before = time.monotonic_ns()
        ticks = int(read())
        after = time.monotonic_ns()
        found.append((after - before, ticks, (before + after) / 2))
    _, ticks, moment = min(found)
    return ticks, moment
