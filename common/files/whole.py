"""Files that are either whole or not there: outputs by rename, inputs within a size limit."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

from ..errors import UsageError
from ..processes.interrupts import surely

# Plans, machines and matrices are small; a larger "document" is a mistaken path.
DOCUMENT_LIMIT = 256 << 20

_NO_FOLDER = "name a folder that can be made"
_MOST_LINKS = 40  # one after the other; the kernel's own limit

FileName = str | os.PathLike[str]


def check_output(path: FileName, inputs: Iterable[FileName] = (), *, database: bool = False) -> None:
    """Raise UsageError where no file can be written: better before the work than after it.

    inputs: files that are read meanwhile, none of which may be the same file; database: it is not written
    from its beginning to its end, so neither a pipe nor a device will do.
    """
    for one in inputs:
        if same_file(path, one):
            raise UsageError(f"{path}: would be written over what is read ({one})", "name another file")
    target, special = _written(Path(path))
    if target.is_dir():
        raise UsageError(f"{path}: is a directory", "name a file")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{path}: no folder {target.parent}", "create it first")
    if special and database:
        raise UsageError(f"{path}: is a pipe or a device", "name a file")
    if special:
        return
    try:
        # Rights alone do not tell: of /proc and of file systems that are read only root has all.
        temporary = _beside(target)
        try:
            temporary.touch(exist_ok=False)
        finally:
            surely(temporary.unlink, True)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", "choose a path that can be written") from error


def same_file(output: FileName, other: FileName) -> bool:
    """Whether both are one file, which to write would destroy: terminals, devices and pipes are none."""
    try:
        found = Path(output).stat()
        return stat.S_ISREG(found.st_mode) and os.path.samestat(found, Path(other).stat())
    except (OSError, ValueError):
        return False


def check_named_once(recordings: Iterable[FileName]) -> None:
    """Raise UsageError for a recording that is given twice, by its name or as a copy."""
    seen = set[str]()
    by_size: dict[int, list[str]] = {}
    for name in recordings:
        path = os.path.realpath(name)
        if path in seen:
            raise UsageError(f"{name}: given twice", "name each recording once")
        seen.add(path)
        with suppress(OSError):  # what cannot be read is told by who reads it
            found = Path(path).stat()
            alike = by_size.setdefault(found.st_size, []) if stat.S_ISREG(found.st_mode) else []
            for other in alike:
                if _same_content(path, other):
                    raise UsageError(f"{name}: is a copy of {other}", "name each recording once")
            alike.append(path)


def _same_content(one: str, other: str) -> bool:
    from filecmp import cmp

    return cmp(one, other, shallow=False)


@contextmanager
def atomic_output(path: FileName) -> Iterator[Path]:
    """Yield a temporary name; rename it to `path` if the block succeeds, else remove it.

    A symbolic link stays one: what it leads to is replaced. A file that was there keeps its mode. A device, a
    pipe or what a process has open (/dev/stdout) is yielded as it is: there is nothing to rename over. Raises
    UsageError if the folder does not exist, cannot be written, the disk is full, or nobody reads the pipe.
    """
    check_output(path)
    target, special = _written(Path(path))
    temporary = target if special else _beside(target)
    try:
        with open_now(target) if target.is_fifo() else nullcontext():
            yield temporary
        if not special:
            _as_before(temporary, target)
            temporary.replace(target)
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename not in (None, str(temporary), str(target)):
            raise
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "free some space there, or write elsewhere" if full else "choose a path that can be written"
        raise UsageError(f"{path}: {error.strerror or error}", hint) from error
    finally:
        if not special:
            with suppress(OSError):
                surely(temporary.unlink, True)


def open_now(path: FileName) -> IO[bytes]:
    """A file to append to; where it is a pipe, raises UsageError instead of waiting for who reads it."""

    def without_waiting(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK, 0o666)

    try:
        file = open(path, "ab", opener=without_waiting)  # noqa: SIM115  # Path.open takes no opener
    except OSError as error:
        if error.errno != errno.ENXIO or not Path(path).is_fifo():
            raise
        hint = "start its reader first, or name a file"
        raise UsageError(f"{path}: nobody reads this pipe", hint) from error
    os.set_blocking(file.fileno(), True)
    return file


def _written(path: Path) -> tuple[Path, bool]:
    """The file that symbolic links lead to, and whether it is no file of a folder: it is written as it is.

    The links in /proc/PID/fd lead to what is open there, whatever name that has, or had.
    """
    target = path
    try:
        for _ in range(_MOST_LINKS):
            if not target.is_symlink():
                return target, target.exists() and not target.is_file()
            folder = target.parent.resolve(strict=True)
            if folder.is_relative_to("/proc"):
                return target, True
            target = folder / target.readlink()
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", "choose a path that can be written") from error


def _as_before(temporary: Path, target: Path) -> None:
    """Give what is to replace a file that one's mode, and its owner where we may."""
    try:
        old = target.stat()
    except FileNotFoundError:
        return
    new = temporary.stat()
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with suppress(OSError):
            os.chown(temporary, old.st_uid, old.st_gid)
    if stat.S_IMODE(old.st_mode) != stat.S_IMODE(new.st_mode):
        temporary.chmod(stat.S_IMODE(old.st_mode))


def make_folder(path: FileName, hint: str = _NO_FOLDER) -> None:
    """Make a folder, and those that it is in, where there is none; raises UsageError where it cannot be."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", hint) from error


@contextmanager
def output_folder(path: FileName, hint: str = _NO_FOLDER) -> Iterator[list[Path]]:
    """Make a folder where it is missing; the block adds the files that it has written in it to the list.

    If the block fails, these files go again, and so do the folders that were made for them. Raises UsageError
    with `hint` if the folder cannot be made.
    """
    folder, written = Path(path), list[Path]()
    missing = [one for one in (folder, *folder.parents) if not os.path.lexists(one)]
    try:
        make_folder(folder, hint)
        yield written
    except BaseException:
        for remove in (*(file.unlink for file in written), *(made.rmdir for made in missing)):
            with suppress(OSError):
                surely(remove)
        raise


def _beside(target: Path) -> Path:
    return target.parent / f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp"


def read_document(path: FileName, what: str, limit: int = DOCUMENT_LIMIT) -> bytes:
    """The content of a small file; `what` names its kind in errors. Raises UsageError if it is unreadable, or
    a pipe into which nobody writes."""

    def without_waiting(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK)

    try:
        with open(path, "rb", opener=without_waiting) as file:
            os.set_blocking(file.fileno(), True)
            data = file.read(limit + 1)
            if not data and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path}: nobody writes into this pipe", "start its writer first")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", f"give a readable {what}") from error
    if len(data) > limit:
        raise UsageError(f"{path}: larger than {limit >> 20} MiB", f"give a {what}")
    return data


def write_document(path: FileName, data: bytes) -> None:
    """Write a small file by rename, so that a reader never sees half of it."""
    with atomic_output(path) as temporary:
        temporary.write_bytes(data)
