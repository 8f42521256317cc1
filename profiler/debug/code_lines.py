"""Which line and function made each piece of a unit's code."""

from collections.abc import Iterator

import msgspec
import numpy as np

from .dwarf import forms
from .dwarf.entries import Entry
from .dwarf.unit import Unit

_NO_LINE = ("", "", 0)


class CodeLines(msgspec.Struct, frozen=True, array_like=True):
    """Pieces of code by address. pieces: rows of int64 (from, to, path, line, function), texts by index."""

    texts: tuple[str, ...]
    pieces: bytes

    def find(self, address: int) -> tuple[str, str, int]:
        """Function, path and line of the code there."""
        rows = np.frombuffer(self.pieces[: len(self.pieces) // 40 * 40], np.int64).reshape(-1, 5)
        at = int(np.searchsorted(rows[:, 0], address, side="right")) - 1
        if at < 0 or address >= rows[at, 1]:
            return _NO_LINE
        path, line, function = (int(value) for value in rows[at, 2:])
        count = len(self.texts)
        if not (0 <= path < count and 0 <= function < count):
            return _NO_LINE
        return self.texts[function], self.texts[path], line

    @property
    def spans(self) -> tuple[int, int]:
        """The first address, and the end of the last."""
        rows = np.frombuffer(self.pieces[: len(self.pieces) // 40 * 40], np.int64).reshape(-1, 5)
        return (int(rows[0, 0]), int(rows[:, 1].max())) if len(rows) else (0, 0)


def code_lines(unit: Unit) -> CodeLines:
    """Of all code of a unit."""
    texts: dict[str, int] = {"": 0}
    lines = unit.lines.rows
    functions = sorted(_functions(unit), key=lambda item: item[2])
    edges = {edge for start, end, *_ in lines for edge in (start, end)}
    edges |= {edge for start, end, *_ in functions for edge in (start, end)}
    most = (1 << 63) - 1
    border = np.array(sorted(edge for edge in edges if edge < most), np.int64)
    if not len(border):
        return CodeLines(("",), b"")
    rows = np.zeros((len(border), 5), np.int64)
    rows[:-1, 0], rows[:-1, 1] = border[:-1], border[1:]
    for start, end, number, line in lines:
        low, high = np.searchsorted(border, [min(start, most), min(end, most)])
        rows[low:high, 2] = texts.setdefault(unit.lines.path(number), len(texts))
        rows[low:high, 3] = line
        unit.file.budget.step()
    for start, end, _, name in functions:
        low, high = np.searchsorted(border, [min(start, most), min(end, most)])
        rows[low:high, 4] = texts.setdefault(name, len(texts))
        unit.file.budget.step()
    return CodeLines(tuple(texts), rows[rows[:, 3] > 0].tobytes())


def _functions(unit: Unit) -> Iterator[tuple[int, int, int, str]]:
    """(from, to, depth, name) of functions, and of what is inlined into them."""
    waiting: list[tuple[Entry, int]] = [(unit.tree, 0)]
    while waiting:
        entry, depth = waiting.pop()
        for child in entry.children:
            unit.file.budget.step()
            if child.tag in (forms.SUBPROGRAM, forms.INLINED):
                name = unit.qualified(child)
                yield from ((start, end, depth, name) for start, end in unit.ranges_of(child.values))
            if child.children:
                waiting.append((child, depth + 1))
