"""The sections of one file's debug information, read when they are needed."""

from .budget import Budget
from .entries import Abbreviations
from .sections import Sections

_MOST_TEXT = 4096


class SectionData:
    """Content by section; budget: what reading it may take."""

    def __init__(self, sections: Sections, budget: Budget) -> None:
        self.budget, self._sections = budget, sections
        self._read: dict[str, bytes] = {}
        self._tables: dict[int, Abbreviations] = {}
        self.changed_ns = sections.changed_ns
        self.info = self.section(".debug_info")

    def section(self, name: str) -> bytes:
        """A section's content; empty where there is none."""
        if name not in self._read:
            self._read[name] = self._sections.read(name)
        return self._read[name]

    def text(self, section: str, offset: int) -> bytes:
        """The text that begins there."""
        data = self.section(section)
        end = data.find(b"\0", offset, offset + _MOST_TEXT)
        return data[offset:end] if end >= 0 else b""

    def abbreviations(self, offset: int) -> Abbreviations:
        """The table of forms there."""
        if offset not in self._tables:
            self._tables[offset] = Abbreviations(self.section(".debug_abbrev"), offset)
        return self._tables[offset]
