"""Samples in few columns: the few bits of each column of a sample, side by side in one to three words.

The database takes as long to store a column of small numbers as one of large ones, so columns are put
together into words of 64 or 32 bits; a view takes them apart again (sample_tables.py). Times have a column of
their own, by whose least and largest values the database skips what a query does not ask for.
"""

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from numaplan.common import load_native

from .schema import COLUMNS, ENUMS, NUMBERS, TIME

_WORD, _HALF = 64, 32
_USER_BITS = 47  # of an address of user memory: where there is one, there may be any other
_KEYS = ("thread", "level", "event", "is_write", "cpu", "node", "region")
_PACKED = [name for name in COLUMNS if name != TIME]

Array = np.ndarray[Any, Any]
Block = Mapping[str, Array]
Ranges = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Field:
    """A column less `base` in `bits` bits of word number `word`, from `shift` on; 0 bits: always base."""

    name: str
    base: int
    bits: int
    word: int
    shift: int

    @property
    def sql(self) -> str:
        """The column by its word, with its name and type."""
        return f"{self._value(COLUMNS[self.name])} AS {self.name}"

    @property
    def code_sql(self) -> str:
        """The same with words and truth values as small numbers, which are quicker to have."""
        kind = COLUMNS[self.name]
        return f"{self._value('UTINYINT')} AS {self.name}" if kind not in NUMBERS else self.sql

    def _value(self, kind: str) -> str:
        if not self.bits:
            return f"'{ENUMS[kind][self.base]}'::{kind}" if kind in ENUMS else f"CAST({self.base} AS {kind})"
        value = f"(word_{self.word} >> {self.shift})" if self.shift else f"word_{self.word}"
        if self.shift + self.bits < _WORD:
            value = f"({value} & {(1 << self.bits) - 1})"
        if kind in ENUMS:
            return f"({list(ENUMS[kind])!r}::{kind}[])[{value}::INTEGER + 1]"
        if kind == "BOOLEAN":
            return f"({value} <> 0)"
        if not self.base:
            return f"{value}::{kind}"
        return f"({value}::{kind if self.bits < _type_bits(kind) else 'BIGINT'} + {self.base})::{kind}"


@dataclass(frozen=True)
class Packing:
    """Where each column but the time is; widths: bytes of each word; ranges: of the values it is made for."""

    fields: tuple[Field, ...]
    widths: tuple[int, ...]
    ranges: Ranges

    @staticmethod
    def of(ranges: Ranges) -> "Packing":
        """A packing for columns whose least and largest values are these, with some room beyond them."""
        bits = {name: _bits(name, *ranges[name]) for name in _PACKED}
        keys = [name for name in _KEYS if bits[name]]
        if sum(bits[name] for name in keys) > _WORD:
            keys = []
        alone = [[name] for name in _PACKED if name not in keys]
        # What is asked for together best stands in one word, unless that takes more room.
        found = min(
            (_placed(groups, bits) for groups in ([*alone, keys], [[name] for name in _PACKED])),
            key=lambda places: sum(_widths(places, bits)),
        )
        fields = []
        for name, (word, shift) in found.items():
            low, high = ranges[name]
            base = low if low == high and not bits[name] else min(low, 0)
            fields.append(Field(name, base, bits[name], word, shift))
        return Packing(tuple(fields), _widths(found, bits), ranges)

    def pack(self, block: Block, start: int, stop: int, words: Sequence[Array]) -> bool:
        """Put rows start..stop of a block into as many rows of the words; False if some value does not fit.

        block: contiguous arrays of the columns' own types; words: contiguous arrays of `widths`.
        """
        for number, out in enumerate(words):
            fields = [field for field in self.fields if field.word == number]
            table = (_Field * len(fields))(*(_native(field, block[field.name], start) for field in fields))
            where = out.ctypes.data
            if not _library().samples_pack(table, len(fields), stop - start, out.itemsize, where):
                return False
        return True


def described(packings: Sequence[Packing]) -> str:
    """Where each table's columns are, as JSON: one object a table, of [base, bits, word, shift] by column."""
    return json.dumps(
        [
            {field.name: [field.base, field.bits, field.word, field.shift] for field in packing.fields}
            for packing in packings
        ]
    )


def ranges_of(block: Block, start: int = 0) -> Ranges:
    """The least and the largest value of each column but the time, from row `start` on."""
    parts = {name: block[name][start:] for name in _PACKED}
    return {name: (int(part.min()), int(part.max())) for name, part in parts.items()}


def united(one: Ranges, other: Ranges) -> Ranges:
    """Ranges that hold both."""
    return {name: (min(low, other[name][0]), max(high, other[name][1])) for name, (low, high) in one.items()}


def everything() -> Ranges:
    """The ranges of all that the columns can hold."""
    found = {}
    for name in _PACKED:
        kind = COLUMNS[name]
        limits = np.iinfo(NUMBERS[kind]) if kind in NUMBERS else None
        found[name] = (int(limits.min), int(limits.max)) if limits else (0, (1 << _type_bits(kind)) - 1)
    return found


def _type_bits(kind: str) -> int:
    """How many bits values of a kind can take."""
    if kind in NUMBERS:
        return 8 * np.dtype(NUMBERS[kind]).itemsize
    return (len(ENUMS[kind]) - 1).bit_length() if kind in ENUMS else 1


def _bits(name: str, low: int, high: int) -> int:
    """How many bits values of this range take, and one more if their kind has so many."""
    if name == "addr" and high < 1 << _USER_BITS:
        return _USER_BITS
    if low == high:
        return 0
    return min((high - min(low, 0)).bit_length() + 1, _type_bits(COLUMNS[name]))


def _placed(groups: list[list[str]], bits: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """(word, shift) of each column: the largest group first, each into the first word that has room."""
    used: list[int] = []
    places = {}
    size = {tuple(group): sum(bits[name] for name in group) for group in groups}
    for group in sorted(size, key=lambda group: -size[group]):
        word = next((at for at, taken in enumerate(used) if taken + size[group] <= _WORD), len(used))
        if word == len(used):
            used.append(0)
        for name in group:
            places[name] = word, used[word] if bits[name] else 0
            used[word] += bits[name]
    return places


def _widths(places: Mapping[str, tuple[int, int]], bits: Mapping[str, int]) -> tuple[int, ...]:
    used = [0] * (1 + max(word for word, _shift in places.values()))
    for name, (word, _shift) in places.items():
        used[word] += bits[name]
    return tuple(4 if taken <= _HALF else 8 for taken in used)


class _Field(ctypes.Structure):
    _fields_ = (
        ("values", ctypes.c_void_p),
        ("base", ctypes.c_uint64),
        ("width", ctypes.c_int32),
        ("shift", ctypes.c_int32),
        ("bits", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    )


def _native(field: Field, values: Array, start: int) -> _Field:
    size = values.itemsize
    width = -size if values.dtype.kind == "i" else size
    base = field.base & (1 << _WORD) - 1
    return _Field(values.ctypes.data + start * size, base, width, field.shift, field.bits)


@cache
def _library() -> ctypes.CDLL:
    library = load_native("profiler", "samples")
    number = ctypes.c_int64
    library.samples_pack.argtypes = [ctypes.POINTER(_Field), number, number, number, ctypes.c_void_p]
    library.samples_pack.restype = ctypes.c_int
    return library
