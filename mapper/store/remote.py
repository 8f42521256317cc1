"""A store at an address that fsspec knows (s3://, sftp://, https://, file://): signed plans only."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from numaplan.common import MachineLacksError, NumaplanError

from .folders import RefusedError
from .signatures import LIMIT as SIGNATURE_LIMIT, Signatures, WrongSignatureError

PATIENCE_S = 10.0  # for one answer
_SIGNATURE = ".sig"
_TRIES = 3
_PAUSE_S = 0.2  # between them
T = TypeVar("T")


class RemotePlace:
    """What fsspec finds below an address. Whatever comes from there may be anybody's; each answer is waited
    for no longer than PATIENCE_S.
    """

    keeps_notes = False

    def __init__(self, address: str, signatures: Signatures) -> None:
        self.label = address.rstrip("/")
        self._signatures = signatures
        self._files, self._root = _within(address, lambda: _opened(address))

    def read(self, parts: Sequence[str], limit: int) -> tuple[bytes, float]:
        """See Place: only what is signed is trusted."""
        pair = self._pair(parts, limit)
        for _ in range(_TRIES):
            try:
                self._signatures.check(parts, *pair)
                break
            except WrongSignatureError:
                # Plan and signature are two files: somebody may be putting them there just now.
                time.sleep(_PAUSE_S)
                before, pair = pair, self._pair(parts, limit)
                if pair == before:
                    raise
        else:
            raise RefusedError(f"{self._name(parts)}: it changes all the time", "try it again")
        return pair[0], self._answer(lambda: self._moment(self._path(parts)))

    def names(self, parts: Sequence[str], most: int) -> list[str]:
        """See Place."""
        try:
            entries = self._answer(lambda: self._files.ls(self._path(parts), detail=False))
        except FileNotFoundError:
            return []
        names = [str(entry).rstrip("/").rpartition("/")[2] for entry in entries]
        return [name for name in names if name and not name.startswith(".")][:most]

    def write(self, parts: Sequence[str], data: bytes) -> None:
        """See Place: the signature first, without which the file counts for nothing."""
        signature = self._signatures.sign(parts, data)
        path = self._path(parts)

        def write() -> None:
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(path + _SIGNATURE, signature)
            self._files.pipe_file(path, data)

        self._answer(write)

    def check_writable(self, _parts: Sequence[str] = ()) -> None:
        """See Place: as far as it is ours to know."""
        self._signatures.check_key()

    def remove(self, parts: Sequence[str]) -> None:
        """See Place."""
        path = self._path(parts)
        for one in (path, path + _SIGNATURE):
            with suppress(FileNotFoundError):
                self._answer(lambda one=one: self._files.rm_file(one))  # type: ignore[misc]

    def _pair(self, parts: Sequence[str], limit: int) -> tuple[bytes, bytes]:
        """A plan and its signature, as they are just now."""
        path = self._path(parts)
        data = self._answer(lambda: self._content(path, limit))
        try:
            return data, self._answer(lambda: self._content(path + _SIGNATURE, SIGNATURE_LIMIT))
        except FileNotFoundError:
            raise RefusedError(f"{self._name(parts)}: it is not signed", "put it there again") from None

    def _content(self, path: str, limit: int) -> bytes:
        with self._files.open(path, "rb") as file:
            data = bytes(file.read(limit + 1))
        if len(data) > limit:
            raise RefusedError(f"{path}: larger than {limit} bytes", "take it out of the store")
        return data

    def _moment(self, path: str) -> float:
        with suppress(Exception):  # not every kind of place knows
            return float(self._files.modified(path).timestamp())
        return 0.0

    def _path(self, parts: Sequence[str]) -> str:
        return "/".join((self._root, *parts))

    def _name(self, parts: Sequence[str]) -> str:
        return "/".join((self.label, *parts))

    def _answer(self, call: Callable[[], T]) -> T:
        return _within(self.label, call)


def _opened(address: str) -> tuple[Any, str]:
    try:
        import fsspec.core
    except ImportError:
        raise MachineLacksError(
            f"{address}: fsspec is not installed", "pip install 'numaplan[remote]', or name a folder"
        ) from None
    try:
        files, path = fsspec.core.url_to_fs(address, use_listings_cache=False)
    except (ImportError, ValueError) as error:  # of what is missing here, nothing is asked there
        text = " ".join(str(error).split())[:300]
        raise MachineLacksError(
            f"{address}: {text}", "install what fsspec needs for such addresses, or name a folder"
        ) from error
    return files, str(path).rstrip("/")


def _within(label: str, call: Callable[[], T]) -> T:
    """What a call returns, if it does so in time; what it raises becomes an error of ours."""
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(call())
        except BaseException as error:
            errors.append(error)

    # A daemon: one that hangs in the network does not keep us.
    thread = threading.Thread(target=run, name="store", daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    if answers:
        return answers[0]
    if not errors:
        raise MachineLacksError(f"{label}: no answer in {PATIENCE_S:g} s", "see whether it can be reached")
    (error,) = errors
    if isinstance(error, (NumaplanError, FileNotFoundError)):
        raise error
    text = " ".join(str(error).split())[:300] or type(error).__name__
    raise MachineLacksError(f"{label}: {text}", "see whether it can be reached") from error
