"""On which node each page of a process is: the move_pages system call, asked to move nothing."""

import ctypes
import platform
from collections.abc import Sequence

_CALL = {"x86_64": 279, "aarch64": 239}


def nodes_of(pid: int, addresses: Sequence[int]) -> list[int]:
    """Node of each page of process `pid`, negative where it has none (not touched, gone).

    Empty when the kernel does not say.
    """
    number = _CALL.get(platform.machine())
    count = len(addresses)
    if number is None or not count:
        return []
    pages = (ctypes.c_void_p * count)(*addresses)
    status = (ctypes.c_int * count)(*([-1] * count))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, pid, ctypes.c_ulong(count), pages, None, status, 0):
        return []
    return list(status)
