"""The variables that code at a place can name, and where they are."""

from collections.abc import Iterator
from dataclasses import dataclass

from .dwarf import forms
from .dwarf.entries import Entry
from .dwarf.forms import Index, sleb, uleb
from .dwarf.unit import Unit

_REGISTER, _FRAME, _ADDRESS, _BY_INDEX = 0x50, 0x91, 0x03, 0xA1
_CFA, _BASE_REGISTER = 0x9C, 0x70


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is: at an address, at a distance from the function's frame, or in a register."""

    address: int = -1
    frame: int | None = None
    register: int = -1


def place_of(unit: Unit, where: bytes) -> Place:
    """What a location says, as far as it is one of the plain ones."""
    if not where:
        return Place()
    operation = where[0]
    if operation == _ADDRESS and len(where) == 9:
        return Place(address=int.from_bytes(where[1:], "little"))
    if operation == _BY_INDEX and len(where) > 1:
        return Place(address=unit.address(Index(uleb(where + b"\0", 1)[0])))
    if operation == _FRAME and len(where) > 1:
        value, end = sleb(where + b"\0", 1)
        return Place(frame=value) if end == len(where) else Place()
    if _REGISTER <= operation < _REGISTER + 32 and len(where) == 1:
        return Place(register=operation - _REGISTER)
    return Place()


def location(unit: Unit, entry: Entry) -> Place:
    """Where a variable always is."""
    where = entry.values.get(forms.LOCATION)
    return place_of(unit, where) if isinstance(where, bytes) else Place()


def variables_in(function: Entry) -> Iterator[Entry]:
    """Variables and parameters of a function and its blocks, not of what is inlined into it."""
    waiting = [function]
    while waiting:
        for child in waiting.pop().children:
            if child.tag in (forms.VARIABLE, forms.PARAMETER):
                yield child
            elif child.tag == forms.LEXICAL_BLOCK:
                waiting.append(child)


def globals_of(unit: Unit) -> Iterator[Entry]:
    """Variables of the unit and of its namespaces."""
    waiting = [unit.tree]
    while waiting:
        for child in waiting.pop().children:
            if child.tag == forms.VARIABLE:
                yield child
            elif child.tag in (forms.NAMESPACE, forms.MODULE, forms.COMMON_BLOCK):
                waiting.append(child)


def frame_shift(function: Entry) -> tuple[int, int]:
    """(register, distance): what to add to a distance from that register for one from the frame's base.

    Registers are the frame pointer (6) and the stack pointer (7); (-1, 0): not known.
    """
    base = function.values.get(forms.FRAME_BASE)
    if not isinstance(base, bytes) or not base:
        return -1, 0
    if base[0] == _CFA:
        return 6, -16  # the return address and the caller's frame pointer lie between
    if _REGISTER <= base[0] < _REGISTER + 32 and len(base) == 1:
        return base[0] - _REGISTER, 0
    if base[0] == _BASE_REGISTER + 6 and base[1:] == b"\0":
        return 6, 0
    return -1, 0
