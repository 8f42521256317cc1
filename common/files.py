"""Files that are either whole or not there: outputs by rename, inputs within a size limit."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import UsageError
from .interrupts import surely

# Plans, machines and matrices are small; a larger "document" is a mistaken path.
DOCUMENT_LIMIT = 256 << 20


def check_output(path: str | os.PathLike[str]) -> None:
    """Raise UsageError where no file can be written: better before the work than after it."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{target}: is a directory", "name a file")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{target}: no folder {target.parent}", "create it first")
    if target.exists() and not target.is_file():
        return
    try:
        # Rights alone do not tell: of /proc and of file systems that are read only root has all.
        temporary = _beside(target)
        try:
            temporary.touch(exist_ok=False)
        finally:
            surely(temporary.unlink, True)
    except OSError as error:
        raise UsageError(
            f"{target}: {error.strerror or error}", "choose a path that can be written"
        ) from error


@contextmanager
def atomic_output(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name beside `path`; rename it to `path` if the block succeeds, else remove it.

    A device or a pipe is yielded as it is: there is nothing to rename over. Raises UsageError if the folder
    does not exist, cannot be written, or the disk is full.
    """
    target = Path(path)
    check_output(target)
    special = target.exists() and not target.is_file()
    temporary = target if special else _beside(target)
    try:
        yield temporary
        if not special:
            temporary.replace(target)
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename not in (None, str(temporary), str(target)):
            raise
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "free some space there, or write elsewhere" if full else "choose a path that can be written"
        raise UsageError(f"{target}: {error.strerror or error}", hint) from error
    finally:
        if not special:
            with suppress(OSError):
                surely(temporary.unlink, True)


@contextmanager
def output_folder(
    path: str | os.PathLike[str], hint: str = "name a folder that can be made"
) -> Iterator[list[Path]]:
    """Make a folder where it is missing; the block adds the files that it has written in it to the list.

    If the block fails, these files go again, and so do the folders that were made for them. Raises UsageError
    with `hint` if the folder cannot be made.
    """
    folder, written = Path(path), list[Path]()
    missing = [one for one in (folder, *folder.parents) if not os.path.lexists(one)]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{folder}: {error.strerror or error}", hint) from error
        yield written
    except BaseException:
        for remove in (*(file.unlink for file in written), *(made.rmdir for made in missing)):
            with suppress(OSError):
                surely(remove)
        raise


def _beside(target: Path) -> Path:
    return target.parent / f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp"


def read_document(path: str | os.PathLike[str], what: str, limit: int = DOCUMENT_LIMIT) -> bytes:
    """The content of a small file; `what` names its kind in errors. Raises UsageError if it is unreadable."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", f"give a readable {what}") from error
    if len(data) > limit:
        raise UsageError(f"{path}: larger than {limit >> 20} MiB", f"give a {what}")
    return data


def write_document(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a small file by rename, so that a reader never sees half of it."""
    with atomic_output(path) as temporary:
        temporary.write_bytes(data)
