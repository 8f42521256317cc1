"""The static data of a module, by the symbols of its ELF file."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

LARGE_OBJECT = 4096  # bytes; smaller objects are not distinguished, they share a section's region
MAX_SYMBOLS = 4 << 20
MAX_FILE = 4 << 30

_WRITABLE_DATA = 0x3  # SHF_WRITE | SHF_ALLOC
_TLS = 0x400
_STT_OBJECT = 1
_SYMBOL = np.dtype(
    [
        ("name", "<u4"),
        ("info", "u1"),
        ("other", "u1"),
        ("section", "<u2"),
        ("value", "<u8"),
        ("size", "<u8"),
    ]
)


@dataclass(frozen=True, slots=True)
class StaticObject:
    """A piece of a module's writable data; address: as in the file (add the load bias)."""

    name: str
    address: int
    bytes: int


@lru_cache(maxsize=512)
def static_objects(path: str) -> tuple[StaticObject, ...]:
    """The objects of at least 4 KiB as `symbol`, what lies between as `.section` or `.section+0xOFFSET`.

    They do not overlap. Linker tables (.got and the like) are left out.
    Empty when the file is gone or is not ELF.
    """
    try:
        if Path(path).stat().st_size > MAX_FILE:
            return ()
        with Path(path).open("rb") as file:
            return tuple(_objects(_elf(file)))
    except Exception:  # elftools raises whatever a damaged file makes of it; nothing is known of it then
        return ()


@lru_cache(maxsize=512)
def build_id_of(path: str) -> str:
    """The GNU build id of an ELF file in hex, or an empty text."""
    try:
        with Path(path).open("rb") as file:
            for segment in _elf(file).iter_segments("PT_NOTE"):
                for note in segment.iter_notes():
                    if note["n_type"] == "NT_GNU_BUILD_ID":
                        return str(note["n_desc"])
    except Exception:  # as above
        return ""
    return ""


def _elf(file: Any) -> Any:
    from elftools.elf.elffile import ELFFile

    return ELFFile(file)


def _objects(elf: Any) -> Iterator[StaticObject]:
    sections = sorted(
        (int(s["sh_addr"]), int(s["sh_size"]), str(s.name))
        for s in elf.iter_sections()
        if s["sh_flags"] & (_WRITABLE_DATA | _TLS) == _WRITABLE_DATA
        and (s["sh_size"] >= LARGE_OBJECT or s.name in (".data", ".bss"))
    )
    symbols = _large_symbols(elf)
    for start, size, name in sections:
        yield from _cut(name, start, start + size, [s for s in symbols if start <= s.address < start + size])


def _cut(section: str, start: int, end: int, symbols: list[StaticObject]) -> Iterator[StaticObject]:
    """A section's symbols and the gaps between them."""
    at = start
    for symbol in symbols:
        if symbol.address < at:  # an alias of, or inside, the one before
            continue
        if symbol.address > at:
            yield _gap(section, start, at, symbol.address)
        length = min(symbol.bytes, end - symbol.address)
        yield StaticObject(symbol.name, symbol.address, length)
        at = symbol.address + length
    if at < end:
        yield _gap(section, start, at, end)


def _gap(section: str, start: int, at: int, end: int) -> StaticObject:
    name = section if at == start else f"{section}+{at - start:#x}"
    return StaticObject(name, at, end - at)


def _large_symbols(elf: Any) -> list[StaticObject]:
    """Ascending by address, the larger first where several share one; equal names get #2, #3."""
    table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
    if table is None or elf.elfclass != 64 or not elf.little_endian or table.num_symbols() > MAX_SYMBOLS:
        return []
    strings = elf.get_section(table["sh_link"])
    # Large libraries have 10^5 symbols: select the few large objects before looking at names.
    rows = np.frombuffer(table.data(), _SYMBOL, table.num_symbols())
    rows = rows[(rows["size"] >= LARGE_OBJECT) & (rows["info"] & 0xF == _STT_OBJECT) & (rows["section"] != 0)]
    found = [
        StaticObject(strings.get_string(int(row["name"])), int(row["value"]), int(row["size"]))
        for row in rows
    ]
    found.sort(key=lambda item: (item.address, -item.bytes, item.name))
    seen: dict[str, int] = {}
    named: list[StaticObject] = []
    for item in found:
        seen[item.name] = seen.get(item.name, 0) + 1
        suffix = f"#{seen[item.name]}" if seen[item.name] > 1 else ""
        named.append(StaticObject(item.name + suffix, item.address, item.bytes))
    return named
