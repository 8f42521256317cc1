"""System calls for placement for which Python has no functions: where pages are, and moving them."""

import ctypes
import errno
import os
import platform

import numpy as np

from numaplan.common import MachineLacksError
from numaplan.mapper import Ints

_NUMBERS = {"x86_64": 279, "aarch64": 239, "ppc64le": 301, "riscv64": 239}  # move_pages
_MOVE = 2  # MPOL_MF_MOVE: pages of this process alone
_BATCH = 1 << 14  # pages a call: others of the process wait while their pages are looked up
PAGE_BYTES = os.sysconf("SC_PAGESIZE")

_libc = ctypes.CDLL(None, use_errno=True)


def page_nodes(pid: int, pages: Ints) -> Ints:
    """(n,) the node id of each page number of a process, -1 where there is no page or it cannot be told.

    Raises OSError (ESRCH: it has ended, EPERM: not ours).
    """
    return _status(pid, pages, None)


def move_pages(pid: int, pages: Ints, node: int) -> Ints:
    """(n,) the node id of each page after moving them to `node`, -1 as page_nodes. Raises OSError."""
    return _status(pid, pages, node)


def _status(pid: int, pages: Ints, node: int | None) -> Ints:
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise MachineLacksError(f"pages cannot be moved on {platform.machine()}", "run on x86_64 or aarch64")
    found = np.full(len(pages), -1, dtype=np.int64)
    for start in range(0, len(pages), _BATCH):
        chunk = np.ascontiguousarray(pages[start : start + _BATCH] * PAGE_BYTES, dtype=np.uint64)
        status = np.full(len(chunk), -errno.ENOENT, dtype=np.int32)
        nodes = None if node is None else np.full(len(chunk), node, dtype=np.int32)
        failed = _libc.syscall(
            ctypes.c_long(number),
            ctypes.c_int(pid),
            ctypes.c_ulong(len(chunk)),
            ctypes.c_void_p(chunk.ctypes.data),
            ctypes.c_void_p(None if nodes is None else nodes.ctypes.data),
            ctypes.c_void_p(status.ctypes.data),
            ctypes.c_int(0 if nodes is None else _MOVE),
        )
        if failed < 0 and ctypes.get_errno() not in (errno.ENOENT, errno.EACCES, errno.EBUSY, errno.ENOMEM):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        found[start : start + len(chunk)] = np.where(status >= 0, status, -1)
    return found
