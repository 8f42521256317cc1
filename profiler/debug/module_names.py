"""What the source calls the code and data of one program or library."""

import struct
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from . import cache
from .answers import CallSite, Variable
from .calls import call_site, static_variable, variables_between
from .code_lines import CodeLines, code_lines
from .dwarf.budget import Budget, TooMuchError
from .dwarf.debug_file import with_debug_info
from .dwarf.info import DebugInfo
from .dwarf.sections import Sections
from .types import Field

_MOST_KNOWN = 1 << 16  # answers of a kind that are kept
_Answer = TypeVar("_Answer")


class ModuleNames:
    """Answers by address in the file; empty ones where it has no debug information, or damaged.

    What was found once is kept for later recordings. ask_server: where the information is not on this
    machine.
    """

    def __init__(self, path: str, budget: Budget, *, ask_server: bool = False) -> None:
        self._budget = budget
        self._program: Sections | None = None
        self._debug: Sections | None = None
        self._place: Path | None = None  # where answers are kept
        self._changed = False
        # A file may be anything, and so may what it says.
        with suppress(OSError, ValueError, struct.error, TooMuchError):
            self._program = Sections(Path(path))
            self._debug = with_debug_info(self._program, ask_server=ask_server)
            if self._debug is not None:
                with suppress(RuntimeError):  # the user has no folder
                    self._place = cache.place_of(self._program, self._debug)

    @property
    def is_known(self) -> bool:
        """Whether there is debug information."""
        return self._debug is not None

    @cached_property
    def _known(self) -> cache.Known:
        return cache.load(self._place) if self._place else cache.Known()

    @cached_property
    def _info(self) -> DebugInfo:
        assert self._debug is not None
        info = DebugInfo(self._debug, self._budget)
        self._budget.add_for(len(info.info))
        return info

    @cached_property
    def _spans(self) -> list[tuple[int, int, CodeLines]]:
        return [(*lines.spans, lines) for lines in self._known.lines]

    def site(self, after: int) -> CallSite:
        """The call that returns to an address."""
        if self._debug is None or self._program is None:
            return CallSite()
        program = self._program
        known = self._known.sites.get(after)
        if known is None:
            known = self._ask(lambda: call_site(self._info, program, after), CallSite())
            self._keep(self._known.sites, after, known)
        return known

    def static(self, address: int) -> Variable | None:
        """The variable at an address."""
        if self._debug is None:
            return None
        statics = self._known.statics
        if address in statics:
            return statics[address]
        found = self._ask(lambda: static_variable(self._info, address), None)
        self._keep(statics, address, found)
        return found

    def statics(self, address: int, size: int) -> tuple[Field, ...]:
        """The variables of a piece of static data, by where they are in it, with the fields of structs."""
        if self._debug is None:
            return ()
        pieces = self._known.pieces
        if address not in pieces:
            none: tuple[Field, ...] = ()
            found = self._ask(lambda: variables_between(self._info, address, address + size), none)
            self._keep(pieces, address, found)
            return found
        return pieces[address]

    def line(self, address: int) -> tuple[str, str, int]:
        """Function, path and line that made the code at an address; "", "" and 0: not known."""
        if self._debug is None or address in self._bare:
            return "", "", 0
        for start, end, lines in self._spans:
            if start <= address < end and (found := lines.find(address))[2]:
                return found
        found = self._ask(lambda: self._more_lines(address), ("", "", 0))
        if not found[2] and self._is_asking and len(self._bare) < _MOST_KNOWN:
            self._bare.add(address)
            self._changed = True
        return found

    @cached_property
    def _bare(self) -> set[int]:
        return set(self._known.bare)

    def _more_lines(self, address: int) -> tuple[str, str, int]:
        """Those of the unit that has the address are known from now on."""
        unit = self._info.unit_at(address)
        if unit is None or unit.offset in self._lined:
            return "", "", 0
        self._lined.add(unit.offset)
        lines = code_lines(unit)
        self._known.lines.append(lines)
        self._spans.append((*lines.spans, lines))
        self._changed = True
        return lines.find(address)

    @cached_property
    def _lined(self) -> set[int]:
        return set()

    _is_asking = True

    def _ask(self, question: Callable[[], _Answer], otherwise: _Answer) -> _Answer:
        """The answer; none from a file that is damaged, or where there is no time left."""
        if self._is_asking:
            try:
                self._budget.check()
                return question()
            except TooMuchError:
                self._is_asking = False
            except Exception:  # a damaged file makes nonsense of anything
                self._is_asking = False
        return otherwise

    def _keep(self, kept: dict[int, _Answer], address: int, answer: _Answer) -> None:
        if self._is_asking and len(kept) < _MOST_KNOWN:
            kept[address] = answer
            self._changed = True

    def save(self) -> None:
        """Keep what was found, and close the files."""
        if self._changed and self._place:
            self._known.bare = sorted(self._bare)
            cache.save(self._place, self._known)
            self._changed = False
        for file in {self._program, self._debug} - {None}:
            assert file is not None
            file.close()
