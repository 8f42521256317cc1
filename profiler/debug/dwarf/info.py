"""The debug information of a file: which unit has which address, and entries by their place."""

import bisect
import re
from functools import cached_property

from .budget import Budget, TooMuchError
from .entries import Entry
from .forms import Index, uleb
from .section_data import SectionData
from .sections import Sections
from .unit import Header, Unit

_MOST_UNITS = 1 << 18
_COMPILE, _PARTIAL, _SKELETON = 1, 3, 4  # kinds of units with entries of their own
_LOCATED = re.compile(rb"\x09\x03(.{8})", re.DOTALL)


class DebugInfo:
    """DWARF 2 to 5 of one file, read lazily. Raises TooMuchError where it is damaged, or takes too long."""

    def __init__(self, sections: Sections, budget: Budget) -> None:
        self.file = SectionData(sections, budget)
        self.budget, self.info = budget, self.file.info

    @cached_property
    def units(self) -> list[Unit]:
        """By their place."""
        data, at = self.info, 0
        found: list[Unit] = []
        while at + 12 <= len(data) and len(found) < _MOST_UNITS:
            self.budget.step()
            start, size = at, 4
            length, at = int.from_bytes(data[at : at + 4], "little"), at + 4
            if length == 0xFFFFFFFF:
                length, at, size = int.from_bytes(data[at : at + 8], "little"), at + 8, 8
            end = at + length
            if end > len(data) or not length:
                break
            version = int.from_bytes(data[at : at + 2], "little")
            at += 2
            kind = _COMPILE
            if version == 5:
                kind = data[at]
                table = int.from_bytes(data[at + 2 : at + 2 + size], "little")
                at += 2 + size + (8 if kind == _SKELETON else 0)
            else:
                table = int.from_bytes(data[at : at + size], "little")
                at += size + 1
            if 2 <= version <= 5 and kind in (_COMPILE, _PARTIAL, _SKELETON):
                found.append(Unit(self.file, self.unit_of, Header(start, end, at, version, size, table)))
            at = end
        return found

    @cached_property
    def _offsets(self) -> list[int]:
        return [unit.offset for unit in self.units]

    def unit_of(self, offset: int) -> Unit:
        """The unit that has an entry at this place."""
        at = bisect.bisect_right(self._offsets, offset) - 1
        if at < 0 or offset >= self.units[at].end:
            raise TooMuchError("an entry outside of all units")
        return self.units[at]

    def entry_at(self, offset: int) -> Entry | None:
        """The entry that begins there."""
        return self.unit_of(offset).entry_at(offset)

    def unit_at(self, address: int) -> Unit | None:
        """The unit that made the code there."""
        if (found := _covering(self._listed, address)) is None:
            found = _covering(self._unlisted, address)
        return found

    @cached_property
    def _listed(self) -> tuple[list[int], list[tuple[int, int, Unit]]]:
        """(from, to, unit) by address, as .debug_aranges says."""
        data, at = self.file.section(".debug_aranges"), 0
        found: list[tuple[int, int, Unit]] = []
        while at + 12 <= len(data):
            start, size = at, 4
            length, at = int.from_bytes(data[at : at + 4], "little"), at + 4
            if length == 0xFFFFFFFF:
                length, at, size = int.from_bytes(data[at : at + 8], "little"), at + 8, 8
            end = min(at + length, len(data))
            offset = int.from_bytes(data[at + 2 : at + 2 + size], "little")
            at += 2 + size + 2
            at += -(at - start) % 16
            try:
                unit = self.unit_of(offset)
            except TooMuchError:
                at = max(end, start + 12)
                continue
            while at + 16 <= end:
                self.budget.step()
                first, count = (int.from_bytes(data[p : p + 8], "little") for p in (at, at + 8))
                at += 16
                if count:
                    found.append((first, first + count, unit))
            at = max(end, start + 12)
        return _sorted(found)

    @cached_property
    def _unlisted(self) -> tuple[list[int], list[tuple[int, int, Unit]]]:
        """The same of units that .debug_aranges has not, by their own entries."""
        listed = {unit.offset for _, _, unit in self._listed[1]}
        found: list[tuple[int, int, Unit]] = []
        for unit in self.units:
            if unit.offset not in listed:
                self.budget.step(16)
                found += [(start, end, unit) for start, end in unit.ranges if start]
        return _sorted(found)

    @cached_property
    def _static(self) -> dict[int, list[int]]:
        """Where expressions begin that say that something is at a fixed address, by that address."""
        found: dict[int, list[int]] = {}
        for match in _LOCATED.finditer(self.info):
            self.budget.step()
            found.setdefault(int.from_bytes(match[1], "little"), []).append(match.start())
        if b"\x02\xa1" in self.info:
            self._add_indexed(found)
        return found

    def _add_indexed(self, found: dict[int, list[int]]) -> None:
        """Those that say it by index, in units that have a table of addresses."""
        for match in re.finditer(rb"[\x02\x03\x04]\xa1", self.info):
            self.budget.step()
            length = self.info[match.start()]
            index, end = uleb(self.info, match.start() + 2)
            if end - match.start() != length + 1:
                continue
            try:
                address = self.unit_of(match.start()).address(Index(index))
            except TooMuchError:
                continue
            found.setdefault(address, []).append(match.start())

    def located_between(self, start: int, end: int) -> list[int]:
        """Addresses of variables in [start, end), ascending."""
        return sorted(address for address in self._static if start <= address < end)

    def places_of(self, address: int) -> list[int]:
        """Where in .debug_info it is said that something is at this address."""
        return self._static.get(address, [])


def _sorted(found: list[tuple[int, int, Unit]]) -> tuple[list[int], list[tuple[int, int, Unit]]]:
    found.sort(key=lambda row: row[:2])
    return [row[0] for row in found], found


def _covering(table: tuple[list[int], list[tuple[int, int, Unit]]], address: int) -> Unit | None:
    at = bisect.bisect_right(table[0], address) - 1
    return table[1][at][2] if at >= 0 and address < table[1][at][1] else None
