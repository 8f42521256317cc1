"""How long the fields of varying length are, for many samples at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from . import attrs as a
from .layout import Layout
from .native import Ints, column

Buffer = NDArray[np.uint8]
# read_format
_TIME_ENABLED, _TIME_RUNNING, _READ_ID, _GROUP, _LOST = 1, 2, 4, 8, 16
# branch_sample_type
_HW_INDEX, _COUNTERS = 1 << 17, 1 << 19
_TOO_LONG = 1 << 20  # longer than any record: the caller drops the sample


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
    entry = 24 + (8 if layout.branch_sample_type & _COUNTERS else 0)
    return (16 if layout.branch_sample_type & _HW_INDEX else 8) + entry * _count(buffer, at, swap)


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
    times = 8 * ((form & _TIME_ENABLED != 0) + (form & _TIME_RUNNING != 0))
    value = 8 * (1 + (form & _READ_ID != 0) + (form & _LOST != 0))
    if form & _GROUP:
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
