"""A compilation unit: its addresses, its entries and its lines, each read when it is needed."""

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from . import forms
from .budget import TooMuchError
from .entries import Abbreviations, Entry, Length, Values, check_depth, name_source, read_entry
from .forms import Index
from .line_table import LineTable
from .ranges import Locations, Ranges, read_locations, read_ranges
from .section_data import SectionData

_FORTRAN = (0x07, 0x08, 0x0E, 0x22, 0x23)  # languages
_CLASSES = (forms.CLASS_TYPE, forms.STRUCTURE_TYPE, forms.UNION_TYPE)
_SCOPES = (forms.INLINED, forms.LEXICAL_BLOCK, forms.SUBPROGRAM)
_NESTED = (forms.NAMESPACE, forms.MODULE, forms.CLASS_TYPE, forms.STRUCTURE_TYPE, forms.UNION_TYPE, *_SCOPES)


@dataclass(frozen=True, slots=True)
class Header:
    """What a unit's header says. table: of its forms of entries."""

    start: int
    end: int
    first: int
    version: int
    offset_bytes: int
    table: int


class Unit:
    """One compilation unit of a file. offset, end: in .debug_info; first: of its first entry; unit_of: the
    unit that has an entry at a place.
    """

    def __init__(self, file: SectionData, unit_of: "Callable[[int], Unit]", header: Header) -> None:
        self.file, self.unit_of = file, unit_of
        self.offset, self.end, self.first = header.start, header.end, header.first
        self.version, self.offset_bytes, self._table = header.version, header.offset_bytes, header.table

    def find(self, offset: int) -> Entry | None:
        """The entry at a place in .debug_info, of whatever unit."""
        return self.unit_of(offset).entry_at(offset)

    @cached_property
    def _abbreviations(self) -> Abbreviations:
        return self.file.abbreviations(self._table)

    @cached_property
    def root(self) -> Values:
        """The values of the unit itself."""
        _, values, _ = read_entry(self.file.info, self.first, self, self._abbreviations)
        return values

    def _base(self, attribute: int, otherwise: int) -> int:
        value = self.root.get(attribute)
        return value if isinstance(value, int) else otherwise

    def address(self, value: object) -> int:
        """An address, maybe by index; -1: there is none."""
        if not isinstance(value, int):
            return -1
        if not isinstance(value, Index):
            return value
        at = self._base(forms.ADDR_BASE, 8) + 8 * value
        data = self.file.section(".debug_addr")
        return int.from_bytes(data[at : at + 8], "little") if at + 8 <= len(data) else -1

    def text(self, value: object) -> str:
        """A text, maybe by index."""
        if isinstance(value, Index):
            size = self.offset_bytes
            at = self._base(forms.STR_OFFSETS_BASE, 8) + size * value
            offset = self.file.section(".debug_str_offsets")[at : at + size]
            value = self.file.text(".debug_str", int.from_bytes(offset, "little"))
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""

    def ranges_of(self, values: Values) -> Ranges:
        """The addresses [from, to) of an entry with these values."""
        found = values.get(forms.RANGES)
        if isinstance(found, int):
            base = self.address(self.root.get(forms.LOW_PC, 0))
            return read_ranges(self, found, base, self._base(forms.RNGLISTS_BASE, 12))
        low, high = self.address(values.get(forms.LOW_PC)), values.get(forms.HIGH_PC)
        if low < 0 or not isinstance(high, int):
            return []
        end = low + high if isinstance(high, Length) else self.address(high)
        return [(low, end)] if low < end else []

    def locations_of(self, value: int) -> Locations:
        """A list of places, by its offset or index."""
        base = self.address(self.root.get(forms.LOW_PC, 0))
        return read_locations(self, value, base, self._base(forms.LOCLISTS_BASE, 12))

    @cached_property
    def first_index(self) -> int:
        """Of arrays that do not say it."""
        return int(self.root.get(forms.LANGUAGE) in _FORTRAN)

    @cached_property
    def ranges(self) -> Ranges:
        """The addresses of the unit's code."""
        return self.ranges_of(self.root)

    @cached_property
    def tree(self) -> Entry:
        """All entries."""
        data, step = self.file.info, self.file.budget.step
        table = self._abbreviations
        top = Entry(self.offset, 0, {}, None)
        above, at, depth, count = top, self.first, 0, 0
        try:
            while at < self.end:
                offset = at
                form, values, at = read_entry(data, at, self, table)
                step()
                count += 1
                if form is None:
                    depth -= 1
                    if above.parent is None or depth <= 0:
                        break
                    above = above.parent
                    continue
                entry = Entry(offset, form.tag, values, above)
                above.children.append(entry)
                if form.children:
                    above, depth = entry, depth + 1
                    check_depth(depth, count)
        except IndexError as error:
            raise TooMuchError("entries that are cut short") from error
        return top.children[0] if top.children else top

    @cached_property
    def _by_offset(self) -> dict[int, Entry]:
        return {entry.offset: entry for entry in self.tree.within()}

    def entry_at(self, offset: int) -> Entry | None:
        """The entry that begins there."""
        return self._by_offset.get(offset)

    def entry_around(self, place: int) -> Entry | None:
        """The entry that has the value at a place in .debug_info."""
        offsets = self._offsets
        at = bisect.bisect_right(offsets, place) - 1
        return self._by_offset[offsets[at]] if at >= 0 else None

    @cached_property
    def _offsets(self) -> list[int]:
        return sorted(self._by_offset)

    @cached_property
    def _functions(self) -> tuple[list[int], list[tuple[int, int, Entry]]]:
        """Functions by where they begin."""
        found = []
        waiting = [self.tree]
        while waiting:
            for entry in waiting.pop().children:
                if entry.tag == forms.SUBPROGRAM:
                    found += [(start, end, entry) for start, end in self.ranges_of(entry.values)]
                if entry.tag in _NESTED:
                    waiting.append(entry)
        found.sort(key=lambda item: item[:2])
        return [item[0] for item in found], found

    def scopes_at(self, address: int) -> list[Entry]:
        """The function with this address and what is inlined into it there, outermost first, with blocks."""
        starts, found = self._functions
        at = bisect.bisect_right(starts, address) - 1
        if at < 0 or not found[at][0] <= address < found[at][1]:
            return []
        scopes = [found[at][2]]
        while inner := self._scope_within(scopes[-1], address):
            scopes.append(inner)
        return scopes

    def _scope_within(self, entry: Entry, address: int) -> Entry | None:
        for child in entry.children:
            if child.tag in (forms.INLINED, forms.LEXICAL_BLOCK):
                self.file.budget.step()
                if any(start <= address < end for start, end in self.ranges_of(child.values)):
                    return child
        return None

    @cached_property
    def lines(self) -> LineTable:
        """Which line made which code."""
        at = self.root.get(forms.STMT_LIST)
        folder = self.text(self.root.get(forms.COMP_DIR))
        return LineTable(self.file, at, folder)

    # ---- what entries say, through what they are instances of ----

    def name_of(self, entry: Entry) -> str:
        """The name that was written in the source."""
        for one in name_source(entry, self.find):
            if name := self.unit_of(one.offset).text(one.values.get(forms.NAME)):
                return name
        return ""

    def declared(self, entry: Entry) -> tuple[str, int]:
        """File and line of a declaration; none: "" and 0."""
        for one in name_source(entry, self.find):
            if line := one.number(forms.DECL_LINE):
                unit = self.unit_of(one.offset)
                return unit.lines.path(one.number(forms.DECL_FILE)), line
        return "", 0

    def type_of(self, entry: Entry) -> Entry | None:
        """The entry of its type."""
        for one in name_source(entry, self.find):
            at = one.values.get(forms.TYPE)
            if isinstance(at, int):
                return self.find(at)
        return None

    def home(self, entry: Entry) -> list[tuple[int, str]]:
        """The classes, namespaces and functions around its declaration, outermost first: tag and name."""
        declared = list(name_source(entry, self.find))[-1]
        found = []
        around = declared.parent
        while around is not None and around.tag not in (forms.COMPILE_UNIT, 0):
            unit = self.unit_of(around.offset)
            found.append((around.tag, unit.name_of(around)))
            around = around.parent
        return found[::-1]

    def qualified(self, function: Entry) -> str:
        """A function's name with its class; a closure's with that of the function around it."""
        name, around = self.name_of(function), self.home(function)
        if around and (around[-1][0] in _CLASSES or name.startswith("{")):
            return f"{around[-1][1]}::{name}" if name else ""
        return name

    def outermost(self, entry: Entry) -> str:
        """The name of the outermost namespace around it."""
        around = self.home(entry)
        return around[0][1] if around and around[0][0] == forms.NAMESPACE else ""
