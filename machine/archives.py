"""Machines in packed files: documents under gzip, xz or bzip2, and recorded trees of /sys in a tar."""

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, Any

from numaplan.common import UsageError, temporary_folder

from .sysfs import read_sysfs
from .topology import Topology

MOST_BYTES = 64 << 20
MOST_FILES = 200_000
_DEEPEST = 100  # folders; of /sys some twenty
_OPENERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"BZh": bz2.BZ2File,
}
_HINT = "give a whole file"
_TREE = ("sys", "devices", "system")
_TAR_MAGIC_AT = 257


def unpacked(data: bytes, source: str) -> bytes:
    """What a packed file holds, or the data themselves; raises UsageError for damaged and too large ones."""
    for magic, opener in _OPENERS.items():
        if data.startswith(magic):
            try:
                with opener(io.BytesIO(data)) as file:
                    content: bytes = file.read(MOST_BYTES + 1)
            except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                raise UsageError(f"{source}: damaged: {error}", _HINT) from error
            if len(content) > MOST_BYTES:
                raise UsageError(f"{source}: unpacks to more than {MOST_BYTES >> 20} MiB", _HINT)
            return content
    return data


def is_tree(data: bytes) -> bool:
    """Whether these are the bytes of a tar."""
    return data[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar"


def read_tree(data: bytes, source: str) -> Topology:
    """The machine of a tar with sys/devices/system somewhere in it; raises UsageError where there is none."""
    with temporary_folder("nmap-") as folder:
        try:
            root = _extract(data, folder, source)
        except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError) as error:
            raise UsageError(f"{source}: damaged: {error}", _HINT) from error
        try:
            return read_sysfs(root)
        except UsageError as error:  # it names the place where the tree was unpacked
            raise UsageError(error.what.replace(str(folder), source), error.hint) from error


def _extract(data: bytes, folder: Path, source: str) -> Path:
    """The plain files of a tar (no links, which nothing here needs); the root of the tree among them."""
    roots: set[PurePosixPath] = set()
    total = 0
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for number, member in enumerate(archive):
            place = PurePosixPath(member.name)
            if number >= MOST_FILES:
                raise UsageError(f"{source}: more than {MOST_FILES:,} files", "give a tree of /sys and /proc")
            if not member.isfile() or place.is_absolute() or ".." in place.parts:
                continue
            total += member.size  # of a sparse file far more than its bytes in the archive
            if total > MOST_BYTES or len(place.parts) > _DEEPEST:
                raise UsageError(f"{source}: too large or too deep for a tree of /sys", _HINT)
            content = archive.extractfile(member)
            target = folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read() if content else b"")
            at = next((i for i in range(len(place.parts)) if place.parts[i : i + 3] == _TREE), None)
            if at is not None:
                roots.add(PurePosixPath(*place.parts[:at]))
    if not roots:
        raise UsageError(f"{source}: no sys/devices/system in it", "give a tree of /sys and /proc")
    return folder / min(roots, key=lambda root: (len(root.parts), root))
