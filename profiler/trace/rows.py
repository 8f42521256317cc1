"""Rows of the tables of a trace that hold few."""

from typing import Annotated, NamedTuple

import msgspec


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
