"""Memory that moves to the thread that touches it next: the Python function, and where the C header is."""

import ctypes
import os
from enum import IntEnum
from typing import Any

from numaplan.common import MachineLacksError, UsageError, native_part


class How(IntEnum):
    """AUTO: exact where there are several nodes, else the kernel's balancing; nothing on one node."""

    AUTO = 0
    USER = 1
    KERNEL = 2


def next_touch(
    memory: Any, length: int | None = None, *, granule: int = 0, how: How = How.AUTO, clear: bool = False
) -> bool:
    """Mark memory: each page moves to the node of the thread that touches it next.

    memory: an address with `length` in bytes, or an object with a writable buffer (a numpy array, a
    bytearray); pages that it holds only in part move too. granule: bytes that move together, a power of 2, 0:
    chosen by size; clear: forget the marks instead. False when this process was not started by nlaunch, where
    nothing is done. Raises UsageError for memory that cannot be marked, MachineLacksError when the kernel
    cannot do it.
    """
    address, size = _extent(memory, length)
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "numaplan_mark_next_touch"):
        return False
    start, count = ctypes.c_void_p(address), ctypes.c_size_t(size)
    if clear:
        failed = library.numaplan_clear_next_touch(start, count)
    else:
        failed = library.numaplan_mark_next_touch(start, count, ctypes.c_size_t(granule), int(how))
    if failed:
        number = ctypes.get_errno()
        what = f"{size} bytes at {address:#x} cannot be marked for next-touch: {os.strerror(number)}"
        if how is How.KERNEL:
            raise MachineLacksError(
                what, "use How.USER; the kernel's way needs Linux 5.12 with NUMA balancing"
            )
        raise UsageError(what, "mark mapped memory that is no stack; granules are powers of 2")
    return True


def next_touch_counts() -> dict[str, int]:
    """What next-touch did in this process: bytes marked, pieces touched, pages moved, pages that stayed."""
    library = ctypes.CDLL(None)
    counts = (ctypes.c_uint64 * 4)()
    if hasattr(library, "numaplan_next_touch_counts"):
        library.numaplan_next_touch_counts(counts)
    return dict(zip(("marked", "touches", "moved", "stayed"), map(int, counts), strict=True))


def include_folder() -> str:
    """The folder of numaplan.h."""
    return str(native_part("launcher", "include"))


def _extent(memory: Any, length: int | None) -> tuple[int, int]:
    if isinstance(memory, int):
        if length is None or length < 0 or memory < 0:
            raise UsageError("an address without a length", "give both, or an object with a buffer")
        return memory, length
    try:
        with memoryview(memory) as view:
            if view.readonly or not view.contiguous:
                raise UsageError("the buffer is read-only or has gaps", "give a contiguous, writable one")
            size = view.nbytes if length is None else min(length, view.nbytes)
            if not size:
                return 0, 0
            return ctypes.addressof(ctypes.c_char.from_buffer(view.cast("B"))), size
    except (TypeError, BufferError) as error:
        raise UsageError(f"{type(memory).__name__} has no writable buffer", "give an array") from error
