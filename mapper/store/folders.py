"""Reading and writing below a folder that nobody else may change, as ssh demands it of its files.

Every folder from the root down, and the file, must be the caller's or root's, and writable by no one else.
Each is opened from the one above, never through a symbolic link, and looked at once it is open: what is
swapped meanwhile is seen or changes nothing.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from numaplan.common import UsageError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without waiting: what was a file may be a pipe by now.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_WHY = {errno.ELOOP: "is a symbolic link", errno.ENOTDIR: "is not a folder"}
_PIECE = 1 << 20
ANOTHER = "choose a --store that can be written"

Parts = Sequence[str]


class RefusedError(UsageError):
    """What is stored cannot be trusted or read; nothing of it was used."""


@contextmanager
def opened_folder(root: str, parts: Parts = ()) -> Iterator[int]:
    """A trusted folder below the root, open; raises FileNotFoundError, RefusedError."""
    folder = _open(root, _FOLDER, None, root)
    try:
        _check(folder, root)
        for place, part in enumerate(parts):
            name = "/".join((root, *parts[: place + 1]))
            inner = _open(part, _FOLDER | os.O_NOFOLLOW, folder, name)
            os.close(folder)
            folder = inner
            _check(folder, name)
        yield folder
    finally:
        os.close(folder)


def made_folder(root: str, parts: Parts) -> None:
    """Create what is missing of a folder; others get no right to write, whatever the umask."""
    try:
        os.makedirs(os.path.dirname(root) or ".", exist_ok=True)  # noqa: PTH103, PTH120
        path = root
        for part in ("", *parts):
            path = f"{path}/{part}" if part else path
            with suppress(FileExistsError):
                os.mkdir(path, 0o755)  # noqa: PTH102
    except OSError as error:
        raise UsageError(
            f"{root}: {error.strerror or error}", "choose a --store that can be written"
        ) from error


def read_file(folder: int, name: str, where: str, limit: int) -> tuple[bytes, float]:
    """(content, time of its last change) of a trusted file; raises FileNotFoundError, RefusedError."""
    file = _open(name, _FILE, folder, where)
    try:
        facts = _check(file, where)
        if not stat.S_ISREG(facts.st_mode):
            raise RefusedError(f"{where}: is not a file", "take it out of the store")
        if facts.st_size > limit:
            raise RefusedError(f"{where}: larger than {limit >> 20} MiB", "take it out of the store")
        pieces, left = list[bytes](), limit + 1
        while left > 0 and (piece := os.read(file, min(left, _PIECE))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces), facts.st_mtime
    finally:
        os.close(file)


def write_file(folder: int, name: str, data: bytes) -> None:
    """Write a file of a folder by rename; raises OSError."""
    temporary = f".{os.getpid()}-{os.urandom(6).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        file = os.open(temporary, flags, 0o644, dir_fd=folder)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(file, left) :]
            os.fchmod(file, stat.S_IMODE(os.fstat(file).st_mode) & ~_OTHERS)
        finally:
            os.close(file)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)


def _open(name: str, flags: int, folder: int | None, where: str) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None)
        why = _WHY.get(number or 0) or getattr(error, "strerror", None) or str(error)
        if number == errno.ENOTDIR and folder is not None and _is_link(name, folder):
            why = _WHY[errno.ELOOP]
        raise RefusedError(f"{where}: {why}", "take it out of the store") from error


def _is_link(name: str, folder: int) -> bool:
    with suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False


def _check(descriptor: int, where: str) -> os.stat_result:
    facts = os.fstat(descriptor)
    if facts.st_uid not in (0, os.geteuid()):
        raise RefusedError(f"{where}: belongs to another user (uid {facts.st_uid})", "put a plan of your own")
    if facts.st_mode & _OTHERS:
        raise RefusedError(f"{where}: others may write to it", f"chmod go-w {where}")
    return facts
