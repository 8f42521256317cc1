"""Where plans are stored: a folder of this machine, or an address of another."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Protocol

from numaplan.common import UsageError

from .folders import ANOTHER, RefusedError, made_folder, opened_folder, read_file, write_file

VARIABLE = "NUMAPLAN_STORE"


class Place(Protocol):
    """What holds files by the names of folders and their own; all of it may be hostile."""

    label: str  # how people know it
    keeps_notes: bool  # of how plans were applied

    def read(self, parts: Sequence[str], limit: int) -> tuple[bytes, float]:
        """(content, when it was stored) of a trusted file; raises FileNotFoundError, RefusedError."""

    def names(self, parts: Sequence[str], most: int) -> list[str]:
        """What is in a folder, at most so many; nothing where there is none. Raises RefusedError."""

    def write(self, parts: Sequence[str], data: bytes) -> None:
        """Write a file whole; raises NumaplanError."""

    def check_writable(self, parts: Sequence[str] = ()) -> None:
        """Raise NumaplanError where a file (without parts: any) could not be written: better before the work
        than after it."""

    def remove(self, parts: Sequence[str]) -> None:
        """Take a file away if it is there; raises NumaplanError."""


class LocalPlace:
    """A folder, which need not exist."""

    keeps_notes = True

    def __init__(self, root: str) -> None:
        self._root = os.path.abspath(root)  # noqa: PTH100
        self.label = self._root

    def read(self, parts: Sequence[str], limit: int) -> tuple[bytes, float]:
        """See Place."""
        where = self._path(parts)
        with _refused(where), opened_folder(self._root, parts[:-1]) as folder:
            return read_file(folder, parts[-1], where, limit)

    def names(self, parts: Sequence[str], most: int) -> list[str]:
        """See Place."""
        try:
            with _refused(self._path(parts)), opened_folder(self._root, parts) as folder:
                return [*islice(self._entries(folder), most)]
        except FileNotFoundError:
            return []

    @staticmethod
    def _entries(folder: int) -> Iterator[str]:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    yield entry.name

    def write(self, parts: Sequence[str], data: bytes) -> None:
        """See Place; where it fails, folders that are empty go again."""
        is_new = not os.path.lexists(self._root)
        for last in (False, True):
            try:
                made_folder(self._root, parts[:-1])
                with opened_folder(self._root, parts[:-1]) as folder:
                    write_file(folder, parts[-1], data)
                return
            except RefusedError:
                raise
            except UsageError:
                self._remove_empty(parts, root=is_new)
                raise
            except IsADirectoryError as error:
                raise self._is_folder(parts) from error
            except OSError as error:
                # Somebody may have dropped the last plan of this folder just now, and the folder with it.
                if last or not isinstance(error, FileNotFoundError):
                    self._remove_empty(parts, root=is_new)
                    raise UsageError(f"{self._root}: {error.strerror or error}", ANOTHER) from error

    def check_writable(self, parts: Sequence[str] = ()) -> None:
        """See Place; creates nothing."""
        with suppress(FileNotFoundError), opened_folder(self._root, parts[:-1]):
            pass
        if parts and os.path.isdir(self._path(parts)):  # noqa: PTH112
            raise self._is_folder(parts)
        above = self._path(parts[:-1])
        while not os.path.lexists(above):
            above = os.path.dirname(above)  # noqa: PTH120
        if not os.path.isdir(above) or not os.access(above, os.W_OK | os.X_OK):  # noqa: PTH112
            raise UsageError(f"{above}: cannot be written", ANOTHER)

    def remove(self, parts: Sequence[str]) -> None:
        """See Place; folders that are empty then go, too."""
        try:
            with opened_folder(self._root, parts[:-1]) as folder:
                os.unlink(parts[-1], dir_fd=folder)
        except FileNotFoundError:
            return
        except IsADirectoryError as error:
            raise self._is_folder(parts) from error
        except OSError as error:
            raise UsageError(f"{'/'.join(parts)}: {error.strerror or error}", "see who owns it") from error
        self._remove_empty(parts)

    def _path(self, parts: Sequence[str]) -> str:
        return "/".join((self._root, *parts))

    def _is_folder(self, parts: Sequence[str]) -> UsageError:
        return UsageError(f"{self._path(parts)}: is a folder", "remove it by hand")

    def _remove_empty(self, parts: Sequence[str], *, root: bool = False) -> None:
        """Take away the folders of a file that hold nothing; root: that one, too."""
        for end in range(len(parts) - 1, -1 if root else 0, -1):
            try:
                os.rmdir(self._path(parts[:end]))  # noqa: PTH106
            except FileNotFoundError:  # of those that were to be made, not all were
                continue
            except OSError:  # not empty
                return


@contextmanager
def _refused(where: str) -> Iterator[None]:
    """What the system says while something is read (a server that is gone, a bad disk) is a refusal, too."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RefusedError(f"{where}: {error.strerror or error}", "see whether it can be read") from error


def store_address(given: str, environment: Mapping[str, str]) -> str:
    """The address of the store: as given, by NUMAPLAN_STORE, or below XDG_DATA_HOME."""
    if address := given or environment.get(VARIABLE, ""):
        return address
    data = environment.get("XDG_DATA_HOME", "")
    if not data.startswith("/"):
        data = os.path.join(os.path.expanduser("~"), ".local", "share")  # noqa: PTH111, PTH118
    return f"{data}/numaplan/plans"


def is_remote(address: str) -> bool:
    """Whether an address is for fsspec."""
    return "://" in address or "::" in address
