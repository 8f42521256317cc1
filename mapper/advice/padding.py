"""Cache lines that go from thread to thread although each uses its own bytes of them."""

from collections.abc import Sequence

import numpy as np

from numaplan.analyzer import Advice, FalseSharing
from numaplan.profiler import Trace

from ..planning.unplanned import alone
from ..threads.problem import Floats
from .situation import Situation, made_at, short_name

MOST_REGIONS = 4
CHANGE = (
    "start each thread's part on a line of its own: _Alignas(64) in C, alignas(64) in C++, "
    "#[repr(align(64))] in Rust, or pad it to 64 bytes"
)


def padded(situation: Situation) -> list[Advice]:
    """For each region with such lines, to separate what its threads use."""
    by_region: dict[int, list[FalseSharing]] = {}
    for line in situation.lines:
        by_region.setdefault(line.region, []).append(line)
    shares = _shares_of_lines(situation.trace)
    ranked = sorted(by_region, key=lambda region: -sum(line.samples for line in by_region[region]))
    answers = (_of_region(situation, by_region[region], shares) for region in ranked[:MOST_REGIONS])
    return [found for found in answers if found is not None]


def _of_region(
    situation: Situation, lines: Sequence[FalseSharing], shares: dict[int, tuple[float, int]]
) -> Advice | None:
    region = lines[0].region
    share, samples = shares.get(region, (0.0, 0))
    falsely = sum(line.samples for line in lines)
    users = sorted({thread for line in lines for thread in line.threads})
    rows = np.unique(situation.lane[users])
    task = situation.task
    removed = share * min(1.0, falsely / max(samples, 1)) * float(task.use.lines.sum())
    other = task.with_lines(_less(task.use.lines, rows, removed))
    instead = alone(other)
    if not situation.gain(instead):
        return None
    uses = {use.region: use for use in situation.regions}
    use = uses.get(region)
    count = sum(line.lines for line in lines)
    return situation.advice(
        "pad",
        instead,
        action=f"separate what {len(users)} threads use of {short_name(use) if use else 'a region'}",
        evidence=f"false sharing: {count} cache line{'s' * (count != 1)}, the most used at {lines[0].place}, "
        f"each thread on its own bytes{made_at([use] if use else [])}",
        change=CHANGE,
    )


def _less(lines: Floats, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]], removed: float) -> Floats:
    """(N, N) without so many of what some threads take from each other."""
    answer = lines.copy()
    among = answer[np.ix_(rows, rows)]
    total = float(among.sum())
    answer[np.ix_(rows, rows)] = among * (1 - min(1.0, removed / total if total > 0 else 0.0))
    return answer


def _shares_of_lines(trace: Trace) -> dict[int, tuple[float, int]]:
    """Of each region its share of the lines that threads take from each other, and its samples in lines that
    several use; by the counted transfers where there are any, else by these samples."""
    found = trace.rows(
        """
        WITH lines AS (
            SELECT region, count(*) AS n FROM samples WHERE region >= 0 AND thread >= 0
            GROUP BY region, addr // 64 HAVING count(DISTINCT thread) > 1 AND bool_or(is_write))
        SELECT region, sum(n)::BIGINT FROM lines GROUP BY region
        """
    )
    samples = {int(region): int(count) for region, count in found}
    taken = {
        int(region): float(count)
        for region, count in trace.rows("SELECT region, sum(events)::DOUBLE FROM transfers GROUP BY region")
    }
    weight = taken or {region: float(count) for region, count in samples.items()}
    total = sum(weight.values()) or 1.0
    return {region: (weight.get(region, 0.0) / total, count) for region, count in samples.items()}
