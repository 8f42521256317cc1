"""Samples of a trace as the analyses take them: filtered, keyed by process, in order of time, in pieces."""

from collections import Counter
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError
from numaplan.profiler import EVENT_CODE, LEVEL_CODE, Trace

from .cache_sizes import DRAM_LEVELS, levels_at, place_of
from .periods import EVENTS, event_weights
from .preparing import choose, count_kinds
from .region_rules import Columns, RegionRules

PIECE = 1 << 20  # samples held at once
HISTOGRAM = 1 << 14
MOST_WEIGHT = 1000  # of loads against stores, in steps of one in FINEST
FINEST = 8
COLUMNS = ("time_ns", "thread", "addr", "is_write", "event", "level", "region", "ip")
DRAM_EVENTS = tuple(EVENT_CODE[name] for name in ("llc_miss_local", "llc_miss_remote"))
LEVELS = len(LEVEL_CODE)
ACCESSES = tuple(EVENT_CODE[name] for name in ("load", "store"))
# By kind, which is event times LEVELS plus level and takes a byte.
_IS_ACCESS = np.array([event in ACCESSES for event in range(len(EVENTS)) for _ in range(LEVELS)])
IS_DRAM = np.array(
    [event in DRAM_EVENTS or level in DRAM_LEVELS for event in range(len(EVENTS)) for level in range(LEVELS)]
)


class Piece(msgspec.Struct, frozen=True):
    """Samples one after another in time, equally long arrays; those without a thread are left out.

    key: address made distinct by process; shared: whether the sample may tell of communication; dram:
    whether it went to memory; is_access: whether it is one of all accesses, and not of those that missed or
    faulted only (None: all are); weight: how many samples of the most sampled event it stands for (None:
    one).
    """

    time_ns: NDArray[np.int64]
    thread: NDArray[np.int32]
    key: NDArray[np.uint64]
    is_write: NDArray[np.bool_]
    shared: NDArray[np.bool_]
    dram: NDArray[np.bool_]
    is_access: NDArray[np.bool_] | None
    weight: NDArray[np.float64] | None

    def sharing(self) -> "SharingSamples":
        """The samples that may be communication, as the counters take them."""
        return SharingSamples(*choose(self.time_ns, self.thread, self.key, self.is_write, self.shared))


class SharingSamples(msgspec.Struct, frozen=True):
    """Samples in order of time that may be communication; equally long contiguous arrays."""

    time_ns: NDArray[np.int64]
    thread: NDArray[np.uint16]
    key: NDArray[np.uint64]
    is_write: NDArray[np.uint8]


class TraceSamples:
    """The samples of one trace, and what is counted of them beforehand.

    events: samples by (event code, level code); count, first_ns, last_ns: of those that belong to a thread;
    period: accesses a sample of the most sampled event, 0 where it is not known; weights: (events,) of each
    event in such samples; backwards: whether a thread's time ran backwards in what was read so far.
    cache_ratio: levels are to be those under a last-level cache that is so much smaller than the machine's
    (see cache_sizes.py), None: as they were recorded. Raises ValueError where that is not known.
    """

    def __init__(self, trace: Trace, cache_ratio: float | None = None) -> None:
        self._trace, self.cache_ratio = trace, cache_ratio
        self._place = None if cache_ratio is None else place_of(trace, cache_ratio)
        self._columns = COLUMNS if self._place is None else (*COLUMNS, "reach")
        self.backwards = False
        self.threads = 1 + max((row.thread for row in trace.thread_rows), default=-1)
        self.regions = RegionRules(trace, self.threads)
        self._columns = (*self._columns, *self.regions.columns)
        self._held = self._few()
        self.events, self.first_ns, self.last_ns = self._kinds() if self._held is None else _kinds(self._held)
        self.count = sum(self.events.values())
        self._only_accesses = any(event in ACCESSES for event, _ in self.events)
        self.period, self.weights = event_weights(trace.meta, {event for event, _ in self.events})

    @property
    def _condition(self) -> str:
        return f"thread >= 0 AND thread < {self.threads}"

    @property
    def access_weights(self) -> tuple[int, int]:
        """Weights of loads and stores, as whole numbers near to their ratio."""
        load, store = (float(self.weights[event]) for event in ACCESSES)
        if load == store:
            return 1, 1
        from fractions import Fraction

        ratio = Fraction(min(MOST_WEIGHT, max(load, store) / min(load, store))).limit_denominator(FINEST)
        pair = ratio.denominator, ratio.numerator
        return pair if load <= store else pair[::-1]

    @property
    def dram_count(self) -> int:
        """Samples that went to memory."""
        return sum(number for kind, number in self.events.items() if _is_dram(*kind))

    @property
    def dram_weight(self) -> float:
        """What one of them counts, as a mean over them."""
        kinds = {kind: number for kind, number in self.events.items() if _is_dram(*kind)}
        weighed = sum(float(self.weights[event]) * number for (event, _), number in kinds.items())
        return weighed / sum(kinds.values()) if kinds else 1.0

    @property
    def has_miss_events(self) -> bool:
        """Whether misses were sampled as events of their own, and not only seen as levels of accesses."""
        return any(event in DRAM_EVENTS for event, _ in self.events)

    def pieces(self) -> Iterator[Piece]:
        """All samples in order of time, about PIECE at a time."""
        for columns in self.columns():
            yield self._piece(columns)

    def columns(self) -> Iterator[Columns]:
        """The same as the trace has them: COLUMNS by name, equally long arrays.

        A second walk costs no reading where there are no more than PIECE.
        """
        if self._held is not None:
            yield self._held
            return
        for low, high in self._spans():
            blocks = list(
                self._trace.sample_blocks(
                    self._columns, where=f"{self._condition} AND time_ns >= {low} AND time_ns < {high}"
                )
            )
            if blocks:
                whole = {name: np.concatenate([block[name] for block in blocks]) for name in self._columns}
                yield self._in_order(whole)

    def _few(self) -> Columns | None:
        """All samples with a thread, if they are few enough to hold; read once, since a query costs more."""
        if self._trace.sample_count > PIECE:
            return None
        found = self._trace.all_samples(self._columns)
        thread = found["thread"]
        if len(thread) and not 0 <= int(thread.min()) <= int(thread.max()) < self.threads:
            known = (thread >= 0) & (thread < self.threads)
            found = {name: values[known] for name, values in found.items()}
        return self._in_order(found) if len(found["thread"]) else None

    def _in_order(self, columns: Columns) -> Columns:
        """Columns in order of time, with the levels that were asked for; of equal times as they were."""
        if self._place is not None:
            columns = {**columns, "level": levels_at(columns["level"], columns["reach"], self._place)}
        time = columns["time_ns"]
        if len(time) < 2 or not bool((time[1:] < time[:-1]).any()):
            return columns
        own = np.argsort(columns["thread"], kind="stable")
        stays = columns["thread"][own][1:] == columns["thread"][own][:-1]
        self.backwards |= bool((stays & (time[own][1:] < time[own][:-1])).any())
        order = np.argsort(time, kind="stable")
        return {name: values[order] for name, values in columns.items()}

    def _kinds(self) -> tuple[dict[tuple[int, int], int], int, int]:
        """Samples by (event, level), and the first and last time, by a query."""
        reach = "-1" if self._place is None else "reach"
        rows = self._trace.rows(
            f"SELECT count(*), min(time_ns), max(time_ns), enum_code(event), enum_code(level), {reach} "
            f"FROM samples WHERE {self._condition} GROUP BY ALL"
        )
        first, last = min((row[1] for row in rows), default=0), max((row[2] for row in rows), default=0)
        kinds = Counter[tuple[int, int]]()
        for number, _first, _last, event, level, past in rows:
            if self._place is not None:
                level = int(levels_at(np.array([level]), np.array([past]), self._place)[0])
            kinds[int(event), int(level)] += int(number)
        return dict(kinds), int(first), int(last)

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Half-open spans of time with about PIECE samples each."""
        end = self.last_ns + 1
        if self.count <= PIECE:
            yield self.first_ns, end
            return
        width = -(-(end - self.first_ns) // HISTOGRAM)
        rows = self._trace.rows(
            f"SELECT (time_ns - {self.first_ns}) // {width} AS bin, count(*) FROM samples "
            f"WHERE {self._condition} GROUP BY bin ORDER BY bin"
        )
        low, held = self.first_ns, 0
        for number, count in rows:
            if held and held + count > PIECE:
                border = self.first_ns + int(number) * width
                yield low, border
                low, held = border, 0
            held += int(count)
        yield low, end

    def _piece(self, columns: Columns) -> Piece:
        kind = columns["event"] * LEVELS + columns["level"]
        key, shared = self.regions.apply(columns)
        is_access = None
        if self._only_accesses and not all(event in ACCESSES for event, _ in self.events):
            is_access = _IS_ACCESS[kind]
            shared &= is_access
        return Piece(
            time_ns=columns["time_ns"],
            thread=columns["thread"],
            key=key,
            is_write=columns["is_write"],
            shared=shared,
            dram=IS_DRAM[kind],
            is_access=is_access,
            weight=None if (self.weights == 1).all() else self.weights[columns["event"]],
        )


def _is_dram(event: int, level: int) -> bool:
    return bool(IS_DRAM[event * LEVELS + level])


def _kinds(columns: Columns) -> tuple[dict[tuple[int, int], int], int, int]:
    """Samples by (event, level), and the first and last time, of columns that are not empty.

    Raises UsageError for codes that stand for nothing, as a damaged file may have them.
    """
    counts = count_kinds(columns["event"], columns["level"], LEVELS)
    if counts[len(IS_DRAM) :].any():
        raise UsageError("the trace has samples of no known event", "it is damaged: copy or record it again")
    events = {divmod(kind, LEVELS): int(counts[kind]) for kind in np.flatnonzero(counts).tolist()}
    return events, int(columns["time_ns"][0]), int(columns["time_ns"][-1])
