"""The wire format of Protocol Buffers, as far as writing needs it."""

import struct
from collections.abc import Iterable

_VARINT, _DOUBLE, _BYTES = 0, 1, 2
_64_BITS = (1 << 64) - 1


def number(field: int, value: int) -> bytes:
    """An integer, enum or bool; a negative one as in two's complement."""
    return _key(field, _VARINT) + _varint(value & _64_BITS)


def double(field: int, value: float) -> bytes:
    """A double."""
    return _key(field, _DOUBLE) + struct.pack("<d", value)


def message(field: int, content: bytes) -> bytes:
    """A message, or other bytes."""
    return _key(field, _BYTES) + _varint(len(content)) + content


def text(field: int, value: str) -> bytes:
    """A string; what is no text in it is replaced."""
    return message(field, value.encode("utf-8", "replace"))


def packed(field: int, values: Iterable[int]) -> bytes:
    """A repeated integer."""
    return message(field, b"".join(_varint(value & _64_BITS) for value in values))


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
