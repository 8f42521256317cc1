"""What an ELF file says of itself, without an import: a program waits for it."""

import os
import struct
from typing import BinaryIO

import msgspec

_IDENT = struct.Struct("<4sBB10x")
# (offsets of program headers, then their size and count; a program header) by word size
_HEADERS = {1: struct.Struct("<28xI10xHH"), 2: struct.Struct("<32xQ14xHH")}
_SEGMENTS = {1: struct.Struct("<II8xI12x"), 2: struct.Struct("<I4xQ16xQ16x")}  # type, offset, bytes in file
_PT_INTERP, _PT_NOTE = 3, 4
_MOST_SEGMENTS = 1024
_MOST_TEXT = 64 << 10  # bytes of an interpreter's name, or of notes
_GNU_BUILD_ID, _GO_BUILD_ID = (3, b"GNU\0"), (4, b"Go\0\0")  # type and name of a note


class ElfFacts(msgspec.Struct, frozen=True):
    """bits: 32 or 64; interpreter: the dynamic linker, empty when static; build_id: GNU's, in hex; go: linked
    by Go.
    """

    bits: int
    interpreter: str
    build_id: str
    go: bool


def elf_facts(path: str) -> ElfFacts | None:
    """Facts of a little-endian ELF file; None when it cannot be read or is something else."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (Path is slow to import)
            return _read_facts(file)
    except (OSError, struct.error):
        return None


def _read_facts(file: BinaryIO) -> ElfFacts | None:
    head = file.read(64)
    magic, word, order = _IDENT.unpack_from(head)
    if magic != b"\x7fELF" or word not in _HEADERS or order != 1:
        return None
    offset, size, count = _HEADERS[word].unpack_from(head)
    layout = _SEGMENTS[word]
    if size < layout.size or count > _MOST_SEGMENTS:
        return None
    interpreter, notes = "", dict[tuple[int, bytes], bytes]()
    table = _read_at(file, offset, size * count)
    for at in range(0, len(table) - layout.size + 1, size):
        kind, start, length = layout.unpack_from(table, at)
        if kind == _PT_INTERP:
            interpreter = os.fsdecode(_read_at(file, start, length).rstrip(b"\0"))
        elif kind == _PT_NOTE:
            notes |= _notes(_read_at(file, start, length))
    return ElfFacts(32 * word, interpreter, notes.get(_GNU_BUILD_ID, b"").hex(), _GO_BUILD_ID in notes)


def _read_at(file: BinaryIO, offset: int, count: int) -> bytes:
    if offset >= 1 << 62:
        return b""
    file.seek(offset)
    return file.read(min(count, _MOST_TEXT)) or b""


def _notes(data: bytes) -> dict[tuple[int, bytes], bytes]:
    """Contents by type and name; each note is three sizes, name and content, padded to four bytes."""
    found: dict[tuple[int, bytes], bytes] = {}
    at = 0
    while at + 12 <= len(data):
        name, content, kind = struct.unpack_from("<3I", data, at)
        start = at + 12 + (name + 3 & ~3)
        found[kind, data[at + 12 : at + 12 + name]] = data[start : start + content]
        at = start + (content + 3 & ~3)
    return found
