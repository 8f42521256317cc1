"""Rows of the tables of a trace that hold few."""

from typing import Annotated, NamedTuple

import msgspec

from .function_names import short_function


class ThreadRow(NamedTuple):
    """A row of the threads table; path: of creation, -1: not known."""

    thread: int
    process: str
    path: str
    tid: int
    pid: int
    name: str
    start_ns: int
    end_ns: int


class RegionRow(NamedTuple):
    """A row of the regions table; thread: that made it, -1: not known."""

    region: int
    process: str
    kind: str
    name: str
    build_id: str
    start_addr: int
    bytes: int
    thread: int
    sequence: int
    start_ns: int
    end_ns: int


class SourceName(NamedTuple):
    """What the source calls a region: a row of the names table; empty, 0, -1: not known.

    name, type: of the variable; item: bytes of one item of the block, or the array; path, line, function:
    that make the block, or declare the variable; layout: in the fields table; chain: in the chains table.
    """

    region: int
    chain: int
    name: str
    type: str
    path: str
    line: int
    function: str
    item: int
    layout: int

    def title(self, kind: str, size: int = 0) -> str:
        """As people read it: `grid (double[], 256 KiB) stencil.c:42 in main`; kind, size: of the region.

        Without a size that is left out.
        """
        about = ", ".join(filter(None, (self.type, _in_bytes(size) if size else "")))
        where = f"{self.path.rpartition('/')[2]}:{self.line}" if self.line else ""
        inside = f"in {short_function(self.function)}" if self.function else ""
        return " ".join(filter(None, (self.name or kind, about and f"({about})", where, inside)))


def _in_bytes(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"


class RegionKey(msgspec.Struct, frozen=True, kw_only=True):
    """What identifies a region from run to run; thread: creation path of the allocating or owning thread.

    sequence: which of the thread's large blocks it is; None: whichever, where a plan has one rule for all
    that a thread allocates at a place.
    """

    kind: str
    name: str
    bytes: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    build_id: str = ""
    process: str = "p0"
    thread: str = ""
    sequence: int | None = 0
