"""Recordings that come packed or through a pipe, made into files that can be mapped."""

import gzip
import lzma
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from numaplan.common import UsageError

_MAGIC: dict[bytes, Callable[[Path], Any]] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\0": lzma.open}
_CHUNK = 1 << 20
# Packed recordings shrink by ten or so; a thousand times means a file made to fill the disk.
_MOST_RATIO = 1000
_FREE_OUTPUT = 64 << 20


def unpacked(name: str, workdir: Path, number: int = 0) -> Path:
    """The recording `name` as a file: itself, or its unpacked content in workdir (`-`: what stdin gives).

    number: tells several files apart. Raises UsageError when it cannot be read or written.
    """
    path = Path(name)
    target = workdir / f"recording-{number}.data"
    try:
        if name == "-":
            with target.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, _CHUNK)
            return target
        if not path.is_file():
            return path
        with path.open("rb") as file:
            start = file.read(8)
        for magic, opener in _MAGIC.items():
            if start.startswith(magic):
                _unpack(opener(path), target, path)
                return target
    except (OSError, EOFError, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{name}: {reason}", "give a whole file that perf record wrote") from error
    return path


def _unpack(packed: IO[bytes], target: Path, path: Path) -> None:
    most = _FREE_OUTPUT + _MOST_RATIO * path.stat().st_size
    written = 0
    with packed, target.open("wb") as file:
        while chunk := packed.read(_CHUNK):
            written += len(chunk)
            if written > most:
                raise UsageError(f"{path}: unpacks to more than {_MOST_RATIO} times its size", "record again")
            file.write(chunk)
