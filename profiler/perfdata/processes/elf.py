"""Where a loaded ELF file has its pieces of data: by the file, when it is here and is the one recorded."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ...identity.static import build_id_of

_PAGE = 4096
_WRITABLE = 2


@dataclass(frozen=True, slots=True)
class Load:
    """A loadable piece of the file; flags as in ELF: 1 executable, 2 writable."""

    offset: int
    address: int
    file_bytes: int
    bytes: int
    flags: int


@lru_cache(maxsize=512)
def loads_of(path: str) -> tuple[Load, ...]:
    """The loadable pieces of an ELF file; empty when it is gone or is no ELF file."""
    try:
        from elftools.elf.elffile import ELFFile

        with Path(path).open("rb") as file:
            return tuple(
                Load(part["p_offset"], part["p_vaddr"], part["p_filesz"], part["p_memsz"], part["p_flags"])
                for part in ELFFile(file).iter_segments("PT_LOAD")
            )
    except Exception:  # elftools raises whatever a damaged file makes of it
        return ()


@lru_cache(maxsize=512)
def local_file(path: str, build_id: str, same_host: bool) -> str:
    """The file here that was recorded as `path`: with its build id, or without one on the same host.

    Also looked for in perf's own cache. Empty when it is not here, or was replaced since.
    """
    candidates = [path]
    if build_id:
        cache = Path.home() / ".debug/.build-id" / build_id[:2] / build_id[2:] / "elf"
        candidates.append(str(cache))
    elif not same_host:
        return ""
    for candidate in candidates:
        found = build_id_of(candidate) if Path(candidate).is_file() else None
        if found is not None and (not build_id or _same_id(found, build_id)):
            return candidate
    return ""


def _same_id(found: str, recorded: str) -> bool:
    """Some recordings pad short ids with zeros."""
    return bool(found) and recorded.startswith(found) and not recorded[len(found) :].strip("0")


def bias_of(path: str, offset: int, address: int) -> int | None:
    """What the loader added to the addresses in the file, by a mapping of it; None if it does not fit."""
    for load in loads_of(path):
        first = load.offset - load.offset % _PAGE
        if first <= offset < load.offset + max(load.file_bytes, 1):
            return address - (load.address - load.address % _PAGE + offset - first)
    return None


def writable_ranges(path: str, bias: int) -> list[tuple[int, int]]:
    """Whole pages of the file's writable pieces: (start, end)."""
    return [
        ((bias + load.address) // _PAGE * _PAGE, -(-(bias + load.address + load.bytes) // _PAGE) * _PAGE)
        for load in loads_of(path)
        if load.flags & _WRITABLE
    ]
