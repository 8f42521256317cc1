"""False sharing: cache lines that move between threads although no two of them use the same bytes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from numaplan.profiler import Trace

from .field_names import used_fields
from .line_writers import written_by
from .page_counts import DATA_KINDS

LINE = 64
WORD = 4  # bytes; accesses are told apart by where they start
OWNED = 0.95  # share of a word's samples by one thread, and of a line's samples in such words
STEADY = 8  # samples of a line that a thread needs to count as one of its users
SAMPLES_A_WORD = 4  # fewer, and threads may miss each other's words by chance
MANY = 64  # samples from which a line is judged by itself only
POOL = 4096  # bytes whose lines are judged together
PAIRS = 16  # of samples in one word, and in different words of a line, that this needs
MOST_LINES = 100
_MOST_SHOWN = 4  # fields


@dataclass(frozen=True)
class FalseSharing:
    """A line whose users keep to words of their own: region index, offset of the line's start in the region
    (negative where the region begins inside it), user threads, samples, writes.

    lines: more than one where lines with few samples each were judged together; offset is then the first's.
    fields: the variables and fields of structs that the first is used for, as far as they are known.
    code: where no fields are known, the lines of code that write the first.
    """

    region: int
    offset: int
    threads: list[int]
    samples: int
    writes: int
    lines: int = 1
    fields: Sequence[str] = ()
    code: Sequence[str] = ()

    @property
    def place(self) -> str:
        """Where the first line is, as people read it."""
        if self.fields:
            return ", ".join(self.fields[:_MOST_SHOWN]) + (", …" if len(self.fields) > _MOST_SHOWN else "")
        at = f"offset {max(self.offset, 0):,}"
        return f"{at} (written at {' and '.join(self.code)})" if self.code else at


def false_sharing(trace: Trace) -> list[FalseSharing]:
    """Falsely shared lines of data regions, most samples first, at most MOST_LINES.

    A line with enough samples is judged by itself, those with few together with those of their 4 KiB; the
    initialisation by another thread is allowed for.
    """
    pooled = _pooled(trace)
    places = {(lines.region, lines.offset // POOL) for lines in pooled}
    found = [
        line
        for line in _single(trace)
        if line.samples >= MANY or (line.region, line.offset // POOL) not in places
    ]
    lines = sorted(found + pooled, key=lambda line: (-line.samples, line.region, line.offset))[:MOST_LINES]
    fields = used_fields(trace, [(line.region, line.offset) for line in lines], LINE)
    lines = [replace(line, fields=names) for line, names in zip(lines, fields, strict=True)]
    bare = [number for number, line in enumerate(lines) if not line.fields]
    code = written_by(trace, [(lines[number].region, lines[number].offset) for number in bare], LINE)
    for number, names in zip(bare, code, strict=True):
        lines[number] = replace(lines[number], code=names)
    return lines


def _single(trace: Trace) -> list[FalseSharing]:
    """Lines that can be judged by themselves."""
    kinds = ", ".join(f"'{kind}'" for kind in DATA_KINDS)
    columns = trace.arrays(
        f"""
        WITH words AS (
            SELECT s.region AS region, s.addr // {LINE} AS line, (s.addr % {LINE}) // {WORD} AS word,
                   s.thread AS thread, count(*) AS samples, count(*) FILTER (s.is_write) AS writes
            FROM samples s JOIN regions r ON s.region = r.region
            WHERE r.kind IN ({kinds}) AND s.thread >= 0 AND s.addr >= r.start_addr GROUP BY ALL),
        lines AS (
            SELECT region, line FROM words GROUP BY ALL
            HAVING count(DISTINCT thread) > 1 AND sum(samples) >= {2 * STEADY} AND sum(writes) > 0)
        SELECT w.region::INTEGER AS region, (w.line * {LINE})::BIGINT - r.start_addr::BIGINT AS offset,
               w.word::INTEGER AS word, w.thread::INTEGER AS thread, w.samples::BIGINT AS samples,
               w.writes::BIGINT AS writes
        FROM words w JOIN lines USING (region, line) JOIN regions r ON r.region = w.region
        WHERE w.line < {1 << 57} AND r.start_addr < {1 << 62}
        ORDER BY 1, 2, 3, 4
        """
    )
    region, offset = columns["region"], columns["offset"]
    new = (np.diff(region, prepend=-1) != 0) | (np.diff(offset, prepend=np.iinfo(np.int64).min) != 0)
    starts = np.flatnonzero(new)
    found = []
    for start, end in pairwise([*starts.tolist(), len(region)]):
        part = {name: values[start:end] for name, values in columns.items()}
        users = _users(part)
        if users:
            found.append(
                FalseSharing(
                    int(region[start]),
                    int(offset[start]),
                    users,
                    int(part["samples"].sum()),
                    int(part["writes"].sum()),
                )
            )
    return found


def _pooled(trace: Trace) -> list[FalseSharing]:
    """Lines of each 4 KiB together, by pairs of samples: of one thread in a word, of several in a line.

    Where threads shared words, pairs in a word would be of different threads as often as of the same.
    """
    kinds = ", ".join(f"'{kind}'" for kind in DATA_KINDS)
    rows = trace.rows(
        f"""
        WITH words AS (
            SELECT s.region AS region, s.addr // {LINE} AS line, (s.addr % {LINE}) // {WORD} AS word,
                   s.thread AS thread, count(*) AS n, count(*) FILTER (s.is_write) AS w,
                   any_value(r.start_addr) AS start
            FROM samples s JOIN regions r ON s.region = r.region
            WHERE r.kind IN ({kinds}) AND s.thread >= 0 AND s.addr >= r.start_addr AND s.addr < {1 << 62}
            GROUP BY ALL),
        in_word AS (SELECT region, line, sum(n) ** 2 - sum(n * n) AS mixed, sum(n * (n - 1)) AS own
                    FROM words GROUP BY region, line, word),
        of_line AS (SELECT region, line, sum(mixed) AS mixed, sum(own) AS own FROM in_word GROUP BY ALL),
        of_thread AS (SELECT region, line, thread, any_value(start) AS start, sum(n) AS n, sum(w) AS w
                      FROM words GROUP BY region, line, thread),
        shared AS (SELECT region, line, any_value(start) AS start, sum(n) AS n, sum(w) AS w,
                          sum(n) ** 2 - sum(n * n) AS apart, list(thread) AS threads
                   FROM of_thread GROUP BY region, line
                   HAVING count(*) > 1 AND sum(w) > 0 AND sum(n) < {MANY})
        SELECT region, min(line) * {LINE} - any_value(start)::HUGEINT, sum(n), sum(w), count(*),
               list_sort(list_distinct(flatten(list(threads))))
        FROM shared JOIN of_line USING (region, line)
        GROUP BY region, (line * {LINE} - start::HUGEINT) // {POOL}
        HAVING count(*) > 1 AND sum(own) >= {2 * PAIRS} AND sum(apart - mixed) >= {2 * PAIRS}
               AND sum(mixed) <= {1 - OWNED} * sum(own + mixed)
        """
    )
    return [
        FalseSharing(int(region), int(offset), [int(one) for one in threads], int(n), int(w), int(lines))
        for region, offset, n, w, lines, threads in rows
    ]


def _users(part: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]) -> list[int]:
    """The threads that share a line falsely; none where it is shared truly, or cannot be judged."""
    threads, user = np.unique(part["thread"], return_inverse=True)
    cells = np.zeros((LINE // WORD, len(threads)))
    wrote = np.zeros_like(cells)
    np.add.at(cells, (part["word"], user), part["samples"])
    np.add.at(wrote, (part["word"], user), part["writes"])
    owner = cells.argmax(axis=1)
    place = np.arange(len(cells))
    own = cells[place, owner]
    owned = (own > 0) & (own >= OWNED * cells.sum(axis=1))
    if own[owned].sum() < max(OWNED * cells.sum(), SAMPLES_A_WORD * owned.sum()):
        return []
    by_thread = np.bincount(owner[owned], weights=own[owned], minlength=len(threads))
    writes = np.bincount(owner[owned], weights=wrote[place, owner][owned], minlength=len(threads))
    steady = by_thread >= STEADY
    if steady.sum() < 2 or not writes[steady].any():
        return []
    return [int(thread) for thread in threads[steady]]
