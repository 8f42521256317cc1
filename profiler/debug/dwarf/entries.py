"""The entries of a compilation unit: functions, variables and types as a tree."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import forms
from .budget import TooMuchError
from .forms import Reader, uleb

MOST_ENTRIES = 4 << 20  # of a unit
_MOST_ATTRIBUTES = 256
_MOST_DEPTH = 500
_LINKS = 8  # from an entry to what it is an instance, or the definition, of

Values = dict[int, int | bytes | None]


class Entry:
    """One entry. values: of the attributes that matter, by attribute."""

    __slots__ = ("children", "offset", "parent", "tag", "values")

    def __init__(self, offset: int, tag: int, values: Values, parent: "Entry | None") -> None:
        self.offset, self.tag, self.values, self.parent = offset, tag, values, parent
        self.children: list[Entry] = []

    def number(self, attribute: int, otherwise: int = 0) -> int:
        """A number; otherwise: where there is none."""
        value = self.values.get(attribute)
        return value if isinstance(value, int) else otherwise

    def within(self) -> Iterator["Entry"]:
        """The entries below, in order."""
        waiting = self.children[::-1]
        while waiting:
            entry = waiting.pop()
            yield entry
            waiting += entry.children[::-1]


@dataclass(frozen=True, slots=True)
class _Form:
    """How entries of one kind are written. plan: (attribute or 0, reader, bytes where fixed, constant)."""

    tag: int
    children: bool
    plan: tuple[tuple[int, Reader | None, int, int | None], ...]


class Abbreviations:
    """A table of forms of entries, read as far as it is asked for."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        self._known: dict[int, _Form] = {}

    def form(self, code: int) -> _Form:
        """The form with this number; raises TooMuchError where there is none."""
        while code not in self._known:
            self._read_one()
        return self._known[code]

    def _read_one(self) -> None:
        data = self._data
        number, at = uleb(data, self._at)
        if not number:
            raise TooMuchError("an entry of an unknown form")
        tag, at = uleb(data, at)
        children = data[at] != 0
        at += 1
        plan: list[tuple[int, Reader | None, int, int | None]] = []
        for _ in range(_MOST_ATTRIBUTES):
            attribute, at = uleb(data, at)
            form, at = uleb(data, at)
            constant = None
            if form == forms.IMPLICIT:
                constant, at = forms.sleb(data, at)
            if not attribute and not form:
                break
            _plan(plan, attribute, form, constant)
        else:
            raise TooMuchError("too many attributes")
        self._known[number] = _Form(tag, children, tuple(plan))
        self._at = at


def _plan(
    plan: list[tuple[int, Reader | None, int, int | None]], attribute: int, form: int, constant: int | None
) -> None:
    """Add an attribute; what is of fixed length and does not matter is skipped together."""
    kept = attribute if attribute in forms.KEPT else 0
    if constant is not None:
        if kept:
            plan.append((kept, None, 0, constant))
        return
    if form == forms.INDIRECT:
        reader: Reader = _indirect
    elif form in forms.READERS:
        reader = forms.READERS[form]
    else:
        raise TooMuchError("a value of an unknown form")
    if kept == forms.HIGH_PC and form in forms.OFFSET_HIGH:
        reader = _length(reader)
    if not kept and form in forms.FIXED:
        if plan and plan[-1][1] is None and plan[-1][3] is None:
            plan[-1] = (0, None, plan[-1][2] + forms.FIXED[form], None)
        else:
            plan.append((0, None, forms.FIXED[form], None))
        return
    plan.append((kept, reader, 0, None))


def _indirect(data: bytes, at: int, unit: object) -> tuple[int | bytes | None, int]:
    form, at = uleb(data, at)
    if form not in forms.READERS:
        raise TooMuchError("a value of an unknown form")
    return forms.READERS[form](data, at, unit)


class Length(int):
    """An address that is given as the distance from another."""


def _length(reader: Reader) -> Reader:
    def read(data: bytes, at: int, unit: object) -> tuple[Length, int]:
        value, at = reader(data, at, unit)
        return Length(value), at

    return read


def read_entry(data: bytes, at: int, unit: object, table: Abbreviations) -> tuple[_Form | None, Values, int]:
    """The form and values of the entry there, and where the next begins; no form: the end of a list."""
    code = data[at]
    at += 1
    if code >= 0x80:
        code, at = uleb(data, at - 1)
    if not code:
        return None, {}, at
    form = table.form(code)
    values: Values = {}
    for attribute, reader, size, constant in form.plan:
        if reader is None:
            if constant is None:
                at += size
            else:
                values[attribute] = constant
        else:
            value, at = reader(data, at, unit)
            if attribute:
                values[attribute] = value
    return form, values, at


def name_source(entry: Entry, find: Callable[[int], Entry | None]) -> Iterator[Entry]:
    """The entry, and those that it is an instance or the definition of; find: one by its place."""
    at: Entry | None = entry
    for _ in range(_LINKS):
        if at is None:
            return
        yield at
        link = at.values.get(forms.ABSTRACT_ORIGIN, at.values.get(forms.SPECIFICATION))
        at = find(link) if isinstance(link, int) else None


def check_depth(depth: int, count: int) -> None:
    """Raise TooMuchError for a tree that no compiler makes."""
    if depth > _MOST_DEPTH or count > MOST_ENTRIES:
        raise TooMuchError("too many entries")
