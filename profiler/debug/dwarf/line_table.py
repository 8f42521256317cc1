"""The line table of a compilation unit: which line of the source made which code."""

import bisect
from functools import cached_property

from . import forms
from .budget import TooMuchError
from .forms import sleb, uleb
from .section_data import SectionData

_MOST_ROWS = 4 << 20
_MOST_FILES = 1 << 18
_PATH, _FOLDER = 1, 2


class LineTable:
    """Lines by address. at: of the table in .debug_line; folder: that the unit was compiled in."""

    def __init__(self, file: SectionData, at: object, folder: str) -> None:
        self.file, self._folder = file, folder
        self._data = file.section(".debug_line")
        self._at = at if isinstance(at, int) else len(self._data)
        self.version, self.offset_bytes, self.offset = 0, 4, 0  # as a unit has them, for who reads forms

    def find(self, address: int) -> tuple[str, int]:
        """Path and line that made the code there; "" and 0 where it is not known."""
        starts, rows = self._starts, self.rows
        at = bisect.bisect_right(starts, address) - 1
        if at < 0:
            return "", 0
        _, end, number, line = rows[at]
        return (self.path(number), line) if address < end and line else ("", 0)

    def path(self, number: int) -> str:
        """The path of a file by its number; empty where there is none."""
        _, files = self._header
        number -= self.version < 5
        return files[number] if 0 <= number < len(files) else ""

    @cached_property
    def _header(self) -> tuple[dict[str, int], list[str]]:
        try:
            return self._read_header()
        except IndexError as error:
            raise TooMuchError("a line table that is cut short") from error

    def _read_header(self) -> tuple[dict[str, int], list[str]]:
        data, at = self._data, self._at
        if at + 16 > len(data):
            return {"start": 0, "end": 0}, []
        length, at = int.from_bytes(data[at : at + 4], "little"), at + 4
        if length == 0xFFFFFFFF:
            self.offset_bytes = 8
            length, at = int.from_bytes(data[at : at + 8], "little"), at + 8
        end = min(at + length, len(data))
        self.version, at = int.from_bytes(data[at : at + 2], "little"), at + 2
        if not 2 <= self.version <= 5:
            raise TooMuchError("a line table of an unknown version")
        if self.version == 5:
            at += 2
        size = self.offset_bytes
        start, at = int.from_bytes(data[at : at + size], "little"), at + size
        start += at
        step, at = data[at], at + 1
        if self.version >= 4:
            at += 1
        base, scale, first = (
            int.from_bytes(data[at + 1 : at + 2], "little", signed=True),
            data[at + 2],
            data[at + 3],
        )
        at += 4
        lengths = data[at : at + max(first - 1, 0)]
        at += len(lengths)
        self._lengths = lengths
        facts = {
            "start": start,
            "end": end,
            "step": step,
            "base": base,
            "range": max(scale, 1),
            "first": first,
        }
        return facts, self._read_files(at, end) if self.version == 5 else self._read_old_files(at, end)

    def _read_old_files(self, at: int, end: int) -> list[str]:
        folders = [self._folder]
        while at < end and self._data[at]:
            text, at = self._text(at)
            folders.append(self._joined(self._folder, text))
            self.file.budget.step()
        at += 1
        files: list[str] = []
        while at < end and self._data[at] and len(files) < _MOST_FILES:
            text, at = self._text(at)
            folder, at = uleb(self._data, at)
            _, at = uleb(self._data, at)
            _, at = uleb(self._data, at)
            files.append(self._joined(folders[folder] if folder < len(folders) else "", text))
            self.file.budget.step()
        return files

    def _read_files(self, at: int, end: int) -> list[str]:
        rows, at = self._read_table(at, end)
        folders = [self._joined(self._folder, path) for path, _ in rows]
        rows, at = self._read_table(at, end)
        return [self._joined(folders[number] if number < len(folders) else "", path) for path, number in rows]

    def _read_table(self, at: int, end: int) -> tuple[list[tuple[str, int]], int]:
        """(path, folder's number) of each."""
        data = self._data
        count, at = data[at], at + 1
        columns = []
        for _ in range(count):
            kind, at = uleb(data, at)
            form, at = uleb(data, at)
            if form not in forms.READERS:
                raise TooMuchError("a value of an unknown form")
            columns.append((kind, forms.READERS[form]))
        total, at = uleb(data, at)
        if total > _MOST_FILES or (total and not columns):
            raise TooMuchError("too many files")
        found = []
        for _ in range(total):
            if at > end:
                break
            values: dict[int, object] = {}
            for kind, read in columns:
                values[kind], at = read(data, at, self)
            self.file.budget.step()
            path, folder = values.get(_PATH), values.get(_FOLDER)
            text = path.decode("utf-8", "replace") if isinstance(path, bytes) else ""
            found.append((text, folder if isinstance(folder, int) else 0))
        return found, at

    def _text(self, at: int) -> tuple[str, int]:
        end = self._data.find(b"\0", at)
        if end < 0:
            raise TooMuchError("a text without an end")
        return self._data[at:end].decode("utf-8", "replace"), end + 1

    @staticmethod
    def _joined(folder: str, name: str) -> str:
        return name if name.startswith("/") or not folder else f"{folder}/{name}"

    @cached_property
    def rows(self) -> list[tuple[int, int, int, int]]:
        """(from, to, file, line) by address."""
        try:
            found = self._run()
        except IndexError as error:
            raise TooMuchError("a line table that is cut short") from error
        found.sort(key=lambda row: row[0])
        return found

    @cached_property
    def _starts(self) -> list[int]:
        return [row[0] for row in self.rows]

    def _run(self) -> list[tuple[int, int, int, int]]:
        facts, _ = self._header
        if not facts["end"]:
            return []
        data, at, end, step = self._data, facts["start"], facts["end"], self.file.budget.step
        least, base, span, first = facts["step"], facts["base"], facts["range"], facts["first"]
        found: list[tuple[int, int, int, int]] = []
        address, file, line = 0, 1, 1
        last: tuple[int, int, int] | None = None
        while at < end:
            op, at = data[at], at + 1
            step()
            emitted = ended = False
            if op >= first:
                jump = op - first
                address += jump // span * least
                line += base + jump % span
                emitted = True
            elif op == 0:
                length, at = uleb(data, at)
                what, following = data[at], at + length
                if what == 1:
                    emitted = ended = True
                elif what == 2:
                    address = int.from_bytes(data[at + 1 : following], "little")
                at = following
            elif op == 1:
                emitted = True
            elif op == 2:
                distance, at = uleb(data, at)
                address += distance * least
            elif op == 3:
                distance, at = sleb(data, at)
                line += distance
            elif op == 4:
                file, at = uleb(data, at)
            elif op == 8:
                address += (255 - first) // span * least
            elif op == 9:
                address, at = address + int.from_bytes(data[at : at + 2], "little"), at + 2
            else:
                for _ in range(self._lengths[op - 1]):
                    _, at = uleb(data, at)
            if emitted:
                if last is not None and last[0] < address:
                    found.append((last[0], address, last[1], last[2]))
                last = None if ended else (address, file, line)
                if ended:
                    address, file, line = 0, 1, 1
                if len(found) > _MOST_ROWS:
                    raise TooMuchError("too many lines")
        return found
