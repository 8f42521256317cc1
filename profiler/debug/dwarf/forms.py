"""The attributes of DWARF 2 to 5 that names are made of, and how their values are written."""

import struct
from collections.abc import Callable
from typing import Any

from .budget import TooMuchError

# Tags
ARRAY_TYPE, CLASS_TYPE, ENUMERATION_TYPE, PARAMETER, LEXICAL_BLOCK, MEMBER = (
    0x01,
    0x02,
    0x04,
    0x05,
    0x0B,
    0x0D,
)
POINTER_TYPE, REFERENCE_TYPE, COMPILE_UNIT, STRUCTURE_TYPE, TYPEDEF, UNION_TYPE = (
    0x0F,
    0x10,
    0x11,
    0x13,
    0x16,
    0x17,
)
COMMON_BLOCK, INHERITANCE, INLINED, SUBRANGE_TYPE, BASE_TYPE, CONST_TYPE = 0x1A, 0x1C, 0x1D, 0x21, 0x24, 0x26
SUBPROGRAM, TEMPLATE_TYPE, VARIABLE, VOLATILE_TYPE, RESTRICT_TYPE, NAMESPACE = (
    0x2E,
    0x2F,
    0x34,
    0x35,
    0x37,
    0x39,
)
RVALUE_TYPE, ATOMIC_TYPE, MODULE = 0x42, 0x47, 0x1E

# Attributes
SIBLING, LOCATION, NAME, BYTE_SIZE, STMT_LIST, LOW_PC, HIGH_PC, LANGUAGE, COMP_DIR = (
    0x01, 0x02, 0x03, 0x0B, 0x10, 0x11, 0x12, 0x13, 0x1B,
)  # fmt: skip
UPPER_BOUND, ABSTRACT_ORIGIN, COUNT, DATA_MEMBER_LOCATION, DECL_FILE, DECL_LINE = (
    0x2F,
    0x31,
    0x37,
    0x38,
    0x3A,
    0x3B,
)
FRAME_BASE, SPECIFICATION, TYPE, RANGES, CALL_FILE, CALL_LINE = 0x40, 0x47, 0x49, 0x55, 0x58, 0x59
LINKAGE_NAME, STR_OFFSETS_BASE, ADDR_BASE, RNGLISTS_BASE, LOCLISTS_BASE = 0x6E, 0x72, 0x73, 0x74, 0x8C
DECLARATION, LOWER_BOUND = 0x3C, 0x22

KEPT = frozenset({
    LOCATION, NAME, BYTE_SIZE, STMT_LIST, LOW_PC, HIGH_PC, COMP_DIR, UPPER_BOUND, ABSTRACT_ORIGIN, COUNT,
    DATA_MEMBER_LOCATION, DECL_FILE, DECL_LINE, FRAME_BASE, SPECIFICATION, TYPE, RANGES, CALL_FILE, CALL_LINE,
    STR_OFFSETS_BASE, ADDR_BASE, RNGLISTS_BASE, LOCLISTS_BASE, DECLARATION, LOWER_BOUND, LANGUAGE,
})  # fmt: skip

IMPLICIT, INDIRECT = 0x21, 0x16
OFFSET_HIGH = (0x06, 0x0B, 0x05, 0x07, 0x0D, 0x0F)  # forms of DW_AT_high_pc that are a length

_U2, _U4, _U8 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")
FIXED = {
    0x01: 8, 0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x19: 0,
    0x1C: 4, 0x1E: 16, 0x20: 8, 0x24: 8, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2A: 2, 0x2B: 3,
    0x2C: 4,
}  # fmt: skip
_OFFSET_FORMS = (0x0E, 0x10, 0x17, 0x1D, 0x1F, 0x1F20, 0x1F21)
_INDEX_FORMS = (0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02)
_UNIT_REFERENCES = (0x11, 0x12, 0x13, 0x14, 0x15)
_ELSEWHERE = (0x1C, 0x1D, 0x1E, 0x20, 0x24, 0x1F20, 0x1F21)  # in another file, or by signature

Value = int | bytes | None
Reader = Callable[[bytes, int, Any], tuple[Any, int]]


class Index(int):
    """An index into the unit's table of addresses, strings, or lists."""


class Reference(int):
    """Where another entry of the unit is."""


def uleb(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128, of at most 64 bits, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 70:
            raise TooMuchError("a number of more than 64 bits")


def sleb(data: bytes, at: int) -> tuple[int, int]:
    """A signed LEB128, of at most 64 bits, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value - (1 << shift) if byte & 0x40 else value), at
        if shift > 70:
            raise TooMuchError("a number of more than 64 bits")


def _number(size: int) -> Reader:
    def read(data: bytes, at: int, _unit: Any) -> tuple[int, int]:
        if at + size > len(data):
            raise TooMuchError("cut short")
        return int.from_bytes(data[at : at + size], "little"), at + size

    return read


def _uleb(data: bytes, at: int, _unit: Any) -> tuple[int, int]:
    return uleb(data, at)


def _sleb(data: bytes, at: int, _unit: Any) -> tuple[int, int]:
    return sleb(data, at)


def _string(data: bytes, at: int, _unit: Any) -> tuple[bytes, int]:
    end = data.find(b"\0", at)
    if end < 0:
        raise TooMuchError("a text without an end")
    return data[at:end], end + 1


def _text_of(section: str) -> Reader:
    def read(data: bytes, at: int, unit: Any) -> tuple[bytes, int]:
        size = unit.offset_bytes
        return unit.file.text(section, int.from_bytes(data[at : at + size], "little")), at + size

    return read


def _offset(data: bytes, at: int, unit: Any) -> tuple[int, int]:
    size = unit.offset_bytes
    return int.from_bytes(data[at : at + size], "little"), at + size


def _reference_address(data: bytes, at: int, unit: Any) -> tuple[int, int]:
    size = 8 if unit.version < 3 else unit.offset_bytes
    return int.from_bytes(data[at : at + size], "little"), at + size


def _indexed(size: int) -> Reader:
    def read(data: bytes, at: int, _unit: Any) -> tuple[Index, int]:
        if size:
            return Index(int.from_bytes(data[at : at + size], "little")), at + size
        value, at = uleb(data, at)
        return Index(value), at

    return read


def _block(size: int) -> Reader:
    def read(data: bytes, at: int, _unit: Any) -> tuple[bytes, int]:
        if size:
            length, at = int.from_bytes(data[at : at + size], "little"), at + size
        else:
            length, at = uleb(data, at)
        if at + length > len(data):
            raise TooMuchError("a block that is cut short")
        return data[at : at + length], at + length

    return read


def _in_unit(inner: Reader) -> Reader:
    def read(data: bytes, at: int, unit: Any) -> tuple[Reference, int]:
        value, at = inner(data, at, unit)
        return Reference(unit.offset + value), at

    return read


def _elsewhere(inner: Reader) -> Reader:
    def read(data: bytes, at: int, unit: Any) -> tuple[None, int]:
        return None, inner(data, at, unit)[1]

    return read


def _present(_data: bytes, at: int, _unit: Any) -> tuple[int, int]:
    return 1, at


def _readers() -> dict[int, Reader]:
    found: dict[int, Reader] = {form: _number(size) for form, size in FIXED.items()}
    found |= dict.fromkeys(_OFFSET_FORMS, _offset) | {0x19: _present}
    found |= {0x03: _block(2), 0x04: _block(4), 0x09: _block(0), 0x0A: _block(1), 0x18: _block(0)}
    found |= {0x08: _string, 0x0D: _sleb, 0x0F: _uleb, 0x10: _reference_address, 0x15: _uleb}
    found |= {0x0E: _text_of(".debug_str"), 0x1F: _text_of(".debug_line_str")}
    found |= dict.fromkeys(_INDEX_FORMS, _indexed(0))
    found |= {0x25 + n: _indexed(n + 1) for n in range(4)} | {0x29 + n: _indexed(n + 1) for n in range(4)}
    found |= {form: _in_unit(found[form]) for form in _UNIT_REFERENCES}
    found |= {form: _elsewhere(found[form]) for form in _ELSEWHERE}
    return found


READERS = _readers()
