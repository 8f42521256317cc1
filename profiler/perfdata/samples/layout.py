"""Where the fields of a sample are, by sample_type, and how long the variable ones are.

A sample is a header, then the fields of `_ORDER` that its sample_type names, in that order. Those of varying
length cut it into sections; inside a section every field has a fixed place.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..file import attrs as a
from .native import Ints, column

Buffer = NDArray[np.uint8]

HEADER = 8
VARIABLE = frozenset((a.READ, a.CALLCHAIN, a.RAW, a.BRANCH_STACK, a.REGS_USER, a.STACK_USER, a.REGS_INTR))
# (bits, any of which brings 8 bytes or a field of varying length; columns in it: (name, position, width))
_ORDER: tuple[tuple[int, tuple[tuple[str, int, int], ...]], ...] = (
    (a.IDENTIFIER, (("id", 0, 8),)),
    (a.IP, (("ip", 0, 8),)),
    (a.TID, (("pid", 0, -4), ("tid", 4, -4))),
    (a.TIME, (("time", 0, 8),)),
    (a.ADDR, (("addr", 0, 8),)),
    (a.ID, (("id", 0, 8),)),
    (a.STREAM_ID, (("stream_id", 0, 8),)),
    (a.CPU, (("cpu", 0, 4),)),
    (a.PERIOD, (("period", 0, 8),)),
    (a.READ, ()),
    (a.CALLCHAIN, ()),
    (a.RAW, ()),
    (a.BRANCH_STACK, ()),
    (a.REGS_USER, ()),
    (a.STACK_USER, ()),
    (a.WEIGHT | a.WEIGHT_STRUCT, (("weight", 0, 8),)),
    (a.DATA_SRC, (("data_src", 0, 8),)),
    (a.TRANSACTION, ()),
    (a.REGS_INTR, ()),
    (a.PHYS_ADDR, (("phys_addr", 0, 8),)),
)
_TOO_LONG = 1 << 20  # longer than any record: the caller drops the sample


@dataclass(frozen=True)
class Section:
    """Fields at fixed places behind one of varying length (`after`, 0 for the first section).

    columns: (name, offset from the start of the section, width); size: bytes of the section.
    """

    after: int
    columns: tuple[tuple[str, int, int], ...]
    size: int


@dataclass(frozen=True)
class Layout:
    """One way samples are laid out; events of equal layout are decoded together.

    by_thread: each thread has counters of its own, with the same ids.
    """

    sections: tuple[Section, ...]
    read_format: int
    by_thread: bool
    branch_sample_type: int
    user_registers: int
    interrupt_registers: int


def layout_of(attr: a.Attr, order: str) -> Layout:
    """The layout of an event's samples (order '<' or '>'). Fields unknown here come behind all others."""
    sections: list[Section] = []
    columns: list[tuple[str, int, int]] = []
    after, size = 0, HEADER
    for bits, inside in _ORDER:
        present = attr.sample_type & bits
        if present and present in VARIABLE:
            sections.append(Section(after, tuple(columns), size))
            after, columns, size = present, [], 0
        elif present:
            columns += [(name, size + at, width) for name, at, width in inside]
            if present & a.WEIGHT_STRUCT:  # the latency is the low half of the word
                columns[-1] = ("weight", size if order == "<" else size + 4, 4)
            size += 8
    sections.append(Section(after, tuple(columns), size))
    return Layout(
        sections=tuple(sections),
        read_format=attr.read_format if attr.sample_type & a.READ else 0,
        by_thread=bool(attr.sample_type & a.READ) and "inherit" in attr.flags,
        branch_sample_type=attr.branch_sample_type if attr.sample_type & a.BRANCH_STACK else 0,
        user_registers=attr.sample_regs_user.bit_count() if attr.sample_type & a.REGS_USER else 0,
        interrupt_registers=attr.sample_regs_intr.bit_count() if attr.sample_type & a.REGS_INTR else 0,
    )


def id_offset(attr: a.Attr) -> int | None:
    """Where a sample of the event carries its id, from the start of the record; the stream's id will do."""
    offsets = {name: offset for name, offset, _width in reversed(layout_of(attr, "<").sections[0].columns)}
    return offsets.get("id", offsets.get("stream_id"))


def field_lengths(bit: int, layout: Layout, buffer: Buffer, at: Ints, swap: bool) -> NDArray[np.int64]:
    """Bytes that the field `bit` takes in each sample.

    at: where it starts, at least 8 bytes before the record's end. What a sample claims beyond any record
    comes back as a length that no record has room for.
    """
    return _LENGTHS[bit](layout, buffer, at, swap)


def _count(buffer: Buffer, at: Ints, swap: bool, width: int = 8) -> Ints:
    """A count or length that a file claims, cut to what can be computed with."""
    return np.minimum(column(buffer, at, width, swap), _TOO_LONG).astype(np.int64)


def _callchain(_layout: Layout, buffer: Buffer, at: Ints, swap: bool) -> Ints:
    return 8 + 8 * _count(buffer, at, swap)


def _raw(_layout: Layout, buffer: Buffer, at: Ints, swap: bool) -> Ints:
    # The size does not count its own four bytes; together they fill whole words.
    return (4 + _count(buffer, at, swap, 4) + 7) & ~7


def _branch_stack(layout: Layout, buffer: Buffer, at: Ints, swap: bool) -> Ints:
    entry = 24 + (8 if layout.branch_sample_type & a.BRANCH_COUNTERS else 0)
    return (16 if layout.branch_sample_type & a.BRANCH_HW_INDEX else 8) + entry * _count(buffer, at, swap)


def _registers(count: int, buffer: Buffer, at: Ints, swap: bool) -> Ints:
    abi = column(buffer, at, 8, swap)
    return np.where(abi != 0, 8 + 8 * count, 8)


def _user_registers(layout: Layout, buffer: Buffer, at: Ints, swap: bool) -> Ints:
    return _registers(layout.user_registers, buffer, at, swap)


def _interrupt_registers(layout: Layout, buffer: Buffer, at: Ints, swap: bool) -> Ints:
    return _registers(layout.interrupt_registers, buffer, at, swap)


def _stack(_layout: Layout, buffer: Buffer, at: Ints, swap: bool) -> Ints:
    size = _count(buffer, at, swap)
    return np.where(size > 0, 16 + size, 8)


def _read(layout: Layout, buffer: Buffer, at: Ints, swap: bool) -> Ints:
    form = layout.read_format
    times = 8 * ((form & a.READ_TIME_ENABLED != 0) + (form & a.READ_TIME_RUNNING != 0))
    value = 8 * (1 + (form & a.READ_ID != 0) + (form & a.READ_LOST != 0))
    if form & a.READ_GROUP:
        return 8 + times + value * _count(buffer, at, swap)
    return np.full(len(at), times + value, dtype=np.int64)


_LENGTHS: dict[int, Callable[[Layout, Buffer, Ints, bool], Ints]] = {
    a.READ: _read,
    a.CALLCHAIN: _callchain,
    a.RAW: _raw,
    a.BRANCH_STACK: _branch_stack,
    a.REGS_USER: _user_registers,
    a.STACK_USER: _stack,
    a.REGS_INTR: _interrupt_registers,
}
