"""The communication matrix from arrays of samples: our rule and those of published tools."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.common import UsageError

from .blocks import BlockCounter
from .combining import Communication
from .counter import LINE_SHIFT, CommunicationCounter, check_threads
from .published_rules import SortedSamples, consecutive, count_pairs, last_two_writers, last_write

Matrix = NDArray[np.float64]
Columns = tuple[NDArray[np.uint16], NDArray[np.uint64], NDArray[np.bool_], NDArray[Any]]

RULES = ("best", "last_writer", "any", "write", "same_line", "last_two_writers", "window")
BLOCK = 64  # bytes
CHUNK = 1 << 20


def communication_matrix(
    thread: ArrayLike,
    addr: ArrayLike,
    is_write: ArrayLike,
    time: ArrayLike,
    *,
    threads: int,
    rule: str = "best",
    block: int = BLOCK,
    window: float | None = None,
    period: int = 0,
) -> Matrix:
    """Who communicates with whom: (N, N) symmetric with zero diagonal, from samples.

    thread: 0..N-1; addr: byte addresses (uint64; different processes must differ); is_write; time: any
    clock, any order. Four equally long arrays. period: accesses per sample if known; 1 makes `best` exact.
    rule: `best` (see counter.py); for comparison, over blocks of `block` bytes:
    `last_writer` an access counts with the last writer unless its thread has been in the block since;
    `any` consecutive accesses by different threads; `write` the same where one of the two is a write;
    `window` the same and no further apart than `window` (default: 1/1000 of the span of time);
    `same_line` a read or write counts with the last write to the same 64-byte line by another thread
    ([COMDETECTIVE], with every sampled store on its bulletin board);
    `last_two_writers` an access counts with each of the last two writers that is another thread (after
    [NUMALIZE], which keeps the last two threads in a block).
    Raises UsageError for arrays of different length, a thread out of range, an unknown rule or block.
    """
    columns = _in_time_order(thread, addr, is_write, time, threads)
    if rule == "best":
        return measure(*columns[:3], threads=threads, period=period).matrix
    return _by_rule(rule, columns, threads, _shift_of(block), window)


def measure(
    thread: ArrayLike, addr: ArrayLike, is_write: ArrayLike, *, threads: int, period: int = 0
) -> Communication:
    """The `best` matrix with standard errors and confidence, from samples in order of time."""
    counter = CommunicationCounter(threads, exact=period == 1)
    ids, where, wrote = np.asarray(thread), np.asarray(addr), np.asarray(is_write)
    for start in range(0, len(ids), CHUNK):
        part = slice(start, start + CHUNK)
        counter.add(ids[part], where[part], wrote[part])
    return counter.result()


def _in_time_order(
    thread: ArrayLike, addr: ArrayLike, is_write: ArrayLike, time: ArrayLike, threads: int
) -> Columns:
    ids, where, wrote, when = (np.asarray(column) for column in (thread, addr, is_write, time))
    if not len({column.shape for column in (ids, where, wrote, when)}) == 1 or ids.ndim != 1:
        raise UsageError("thread, addr, is_write and time differ in length", "give equally long flat arrays")
    checked = check_threads(ids, threads)
    columns = checked, where.astype(np.uint64, copy=False), wrote.astype(bool, copy=False), when
    if len(when) > 1 and bool((when[1:] < when[:-1]).any()):
        order = np.argsort(when, kind="stable")
        columns = checked[order], columns[1][order], columns[2][order], when[order]
    return columns


def _shift_of(block: int) -> int:
    if block < 1 or block & (block - 1) or block > 1 << 30:
        raise UsageError(f"block of {block} bytes", "give a power of two, as 64 or 4096")
    return block.bit_length() - 1


def _by_rule(
    rule: str,
    columns: Columns,
    threads: int,
    shift: int,
    window: float | None,
) -> Matrix:
    thread, addr, is_write, time = columns
    if rule == "last_writer":
        counter = BlockCounter(threads, shift)
        counter.add(
            np.ascontiguousarray(addr),
            thread,
            np.ascontiguousarray(is_write).view(np.uint8),
        )
        directed: Matrix = counter.events()
        return directed + directed.T
    shift = LINE_SHIFT if rule == "same_line" else shift
    samples = SortedSamples(addr >> np.uint64(shift), thread, is_write, time)
    if rule == "any":
        pairs = consecutive(samples, with_write=False)
    elif rule == "write":
        pairs = consecutive(samples, with_write=True)
    elif rule == "window":
        span = float(time[-1] - time[0]) if len(time) else 0.0
        pairs = consecutive(samples, with_write=True, within=span / 1000 if window is None else window)
    elif rule == "same_line":
        pairs = last_write(samples)
    elif rule == "last_two_writers":
        pairs = last_two_writers(samples)
    else:
        raise UsageError(f"no rule {rule!r}", f"choose from {', '.join(RULES)}")
    return count_pairs(samples, pairs, threads)
