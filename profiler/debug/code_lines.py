"""Which line and function made each piece of a unit's code; of what is inlined from a library (std::vector),
those that people wrote around it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from .choosing import is_library_path
from .dwarf import forms
from .dwarf.entries import Entry
from .dwarf.unit import Unit

_ROW = 20  # bytes
_NO_LINE = ("", "", 0)


class CodeLines(msgspec.Struct, frozen=True, array_like=True):
    """Pieces of code by address. pieces: rows of uint32 (from, to, path, line, function), addresses from
    `base` on, texts by index.
    """

    base: int
    texts: tuple[str, ...]
    pieces: bytes

    def find(self, address: int) -> tuple[str, str, int]:
        """Function, path and line of the code there."""
        rows, place = self._rows(), address - self.base
        if place < 0:
            return _NO_LINE
        at = int(np.searchsorted(rows[:, 0], place, side="right")) - 1
        if at < 0 or place >= rows[at, 1]:
            return _NO_LINE
        path, line, function = (int(value) for value in rows[at, 2:])
        count = len(self.texts)
        if not (0 <= path < count and 0 <= function < count):
            return _NO_LINE
        return self.texts[function], self.texts[path], line

    @property
    def spans(self) -> tuple[int, int]:
        """The first address, and the end of the last."""
        rows = self._rows()
        return (self.base + int(rows[0, 0]), self.base + int(rows[-1, 1])) if len(rows) else (0, 0)

    def _rows(self) -> NDArray[np.uint32]:
        whole = len(self.pieces) // _ROW * _ROW
        return np.frombuffer(self.pieces[:whole], np.uint32).reshape(-1, 5)


def code_lines(unit: Unit) -> CodeLines:
    """Of all code of a unit."""
    texts: dict[str, int] = {"": 0}
    lines = unit.lines.rows
    functions = sorted(_functions(unit), key=lambda item: item.depth)
    edges = {edge for start, end, *_ in lines for edge in (start, end)}
    edges |= {edge for one in functions for edge in (one.start, one.end)}
    most = (1 << 63) - 1
    border = np.array(sorted(edge for edge in edges if edge < most), np.int64)
    if not len(border):
        return CodeLines(0, ("",), b"")
    rows = np.zeros((len(border), 5), np.int64)
    rows[:-1, 0], rows[:-1, 1] = border[:-1], border[1:]
    for start, end, number, line in lines:
        low, high = np.searchsorted(border, [min(start, most), min(end, most)])
        rows[low:high, 2] = texts.setdefault(unit.lines.path(number), len(texts))
        rows[low:high, 3] = line
        unit.file.budget.step()
    callers = np.zeros((len(border), 3), np.int64)  # path, line and function of the innermost of the program
    for one in functions:
        low, high = np.searchsorted(border, [min(one.start, most), min(one.end, most)])
        if one.line and not is_library_path(one.path):
            callers[low:high, 0] = texts.setdefault(one.path, len(texts))
            callers[low:high, 1] = one.line
            callers[low:high, 2] = rows[low:high, 4]
        rows[low:high, 4] = texts.setdefault(one.name, len(texts))
        unit.file.budget.step()
    library = np.array([is_library_path(text) for text in texts])
    inlined = library[rows[:, 2]] & (callers[:, 1] > 0)
    rows[inlined, 2:] = callers[inlined]
    return _packed(tuple(texts), rows[rows[:, 3] > 0])


def _packed(texts: tuple[str, ...], rows: NDArray[np.int64]) -> CodeLines:
    """Neighbours of one line and function put together; what is too far from the start is left out."""
    base = int(rows[0, 0]) if len(rows) else 0
    rows = rows[rows[:, 1] - base < 1 << 32]
    if not len(rows):
        return CodeLines(0, ("",), b"")
    new = np.append(True, (rows[1:, 2:] != rows[:-1, 2:]).any(axis=1) | (rows[1:, 0] != rows[:-1, 1]))
    last = np.append(np.flatnonzero(new)[1:] - 1, len(rows) - 1)
    kept = rows[new]
    kept[:, 1] = rows[last, 1]
    kept[:, :2] -= base
    return CodeLines(base, texts, kept.astype(np.uint32).tobytes())


class _Function(NamedTuple):
    """A piece of a function's code, or of one inlined into it; path, line: where that is called."""

    start: int
    end: int
    depth: int
    name: str
    path: str
    line: int


def _functions(unit: Unit) -> Iterator[_Function]:
    names: dict[object, str] = {}  # by what they are instances of
    waiting: list[tuple[Entry, int]] = [(unit.tree, 0)]
    while waiting:
        entry, depth = waiting.pop()
        for child in entry.children:
            unit.file.budget.step()
            if child.tag in (forms.SUBPROGRAM, forms.INLINED):
                ranges = unit.ranges_of(child.values)
                origin = child.values.get(forms.ABSTRACT_ORIGIN, child.offset)
                if ranges and origin not in names:
                    names[origin] = unit.qualified(child)
                line = child.number(forms.CALL_LINE) if child.tag == forms.INLINED else 0
                path = unit.lines.path(child.number(forms.CALL_FILE)) if ranges and line else ""
                for start, end in ranges:
                    yield _Function(start, end, depth, names[origin], path, line)
            if child.children:
                waiting.append((child, depth + 1))
