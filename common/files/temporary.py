"""Temporary folders that no signal leaves behind."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..processes.interrupts import surely, uninterrupted


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A new folder, in TMPDIR or `parent`, removed at the end however that comes."""
    folder = None
    try:
        with uninterrupted():
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        yield folder
    finally:
        if folder is not None:
            surely(shutil.rmtree, folder, True)


@contextmanager
def swept_folder(prefix: str) -> Iterator[Path]:
    """The same in TMPDIR; the next one with this prefix removes what a SIGKILL has left of it."""
    for left_over in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError), _opened(left_over) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_uid == os.getuid():
                shutil.rmtree(left_over, ignore_errors=True)
    while True:
        with temporary_folder(prefix) as folder, ExitStack() as held:
            with suppress(OSError):  # of file systems without locks: there nobody removes it either
                fcntl.flock(held.enter_context(_opened(folder)), fcntl.LOCK_EX)
            if folder.exists():  # else somebody was faster than our lock
                yield folder
                return


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """A descriptor that programs started meanwhile do not have."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
