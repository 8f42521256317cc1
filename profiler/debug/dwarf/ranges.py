"""Lists of addresses: ranges of code, and where a variable is while which code runs."""

from typing import Protocol

from .budget import TooMuchError
from .forms import Index, uleb
from .section_data import SectionData

Ranges = list[tuple[int, int]]
Locations = list[tuple[int, int, bytes]]
_MOST = 1 << 16
_ALL = (1 << 64) - 1


class Owner(Protocol):
    """The unit whose lists they are."""

    file: SectionData
    version: int
    offset_bytes: int

    def address(self, value: object) -> int:
        """An address, maybe by index; -1: there is none."""


def read_ranges(unit: Owner, value: int, base: int, lists: int) -> Ranges:
    """A list by its offset or index; base: the unit's first address, lists: where its lists' offsets are."""
    if unit.version < 5:
        found = _read_pairs(unit, ".debug_ranges", value, base, located=False)
    else:
        at = _by_index(unit, ".debug_rnglists", value, lists)
        found = _read_list(unit, ".debug_rnglists", at, base, located=False)
    return [(start, end) for start, end, _ in found]


def read_locations(unit: Owner, value: int, base: int, lists: int) -> Locations:
    """Likewise, each with the expression that says where."""
    if unit.version < 5:
        return _read_pairs(unit, ".debug_loc", value, base, located=True)
    at = _by_index(unit, ".debug_loclists", value, lists)
    return _read_list(unit, ".debug_loclists", at, base, located=True)


def _by_index(unit: Owner, section: str, value: int, lists: int) -> int:
    if not isinstance(value, Index):
        return value
    size = unit.offset_bytes
    at = lists + size * value
    return lists + int.from_bytes(unit.file.section(section)[at : at + size], "little")


def _read_pairs(unit: Owner, section: str, at: int, base: int, *, located: bool) -> Locations:
    """As in DWARF 2 to 4."""
    data = unit.file.section(section)
    found: Locations = []
    base = max(base, 0)
    for _ in range(_MOST):
        unit.file.budget.step()
        if at + 16 > len(data):
            break
        start, end = (
            int.from_bytes(data[at : at + 8], "little"),
            int.from_bytes(data[at + 8 : at + 16], "little"),
        )
        at += 16
        if not start and not end:
            break
        if start == _ALL:
            base = end
            continue
        where = b""
        if located:
            length = int.from_bytes(data[at : at + 2], "little")
            where, at = data[at + 2 : at + 2 + length], at + 2 + length
        if start < end:
            found.append((base + start, base + end, where))
    return found


def _read_list(unit: Owner, section: str, at: int, base: int, *, located: bool) -> Locations:
    """As in DWARF 5."""
    data = unit.file.section(section)
    found: Locations = []
    base = max(base, 0)
    try:
        for _ in range(_MOST):
            unit.file.budget.step()
            kind, at = data[at], at + 1
            if kind == 0:
                break
            start, end = 0, 0
            if located and kind == 9:  # a pair of views, GNU's
                _, at = uleb(data, at)
                _, at = uleb(data, at)
                continue
            if kind == 1 or kind == (6 if located else 5):  # a new base
                if kind == 1:
                    index, at = uleb(data, at)
                    base = unit.address(Index(index))
                else:
                    base, at = int.from_bytes(data[at : at + 8], "little"), at + 8
                continue
            if kind in (2, 3):
                index, at = uleb(data, at)
                start = unit.address(Index(index))
                end, at = uleb(data, at)
                end = unit.address(Index(end)) if kind == 2 else start + end
            elif kind == 4:
                start, at = uleb(data, at)
                end, at = uleb(data, at)
                start, end = base + start, base + end
            elif located and kind == 5:  # where nothing else holds
                start, end = 0, _ALL
            elif kind == (7 if located else 6):
                start, end, at = (
                    int.from_bytes(data[at : at + 8], "little"),
                    int.from_bytes(data[at + 8 : at + 16], "little"),
                    at + 16,
                )
            elif kind == (8 if located else 7):
                start, at = int.from_bytes(data[at : at + 8], "little"), at + 8
                length, at = uleb(data, at)
                end = start + length
            else:
                break
            where = b""
            if located:
                length, at = uleb(data, at)
                where, at = data[at : at + length], at + length
            if 0 <= start < end:
                found.append((start, end, where))
    except IndexError as error:
        raise TooMuchError("a list that is cut short") from error
    return found
