"""Cache lines that go from thread to thread although each uses its own bytes of them."""

from collections.abc import Sequence

import numpy as np

from numaplan.analyzer import Advice, FalseSharing
from numaplan.profiler import Trace

from ..planning.cost.unplanned import alone
from ..threads.problem import Floats
from .own_lines import called, cure
from .situation import Situation, made_at, short_name

MOST_REGIONS = 4


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
    use = next((use for use in situation.regions if use.region == region), None)
    what = called(lines) or (short_name(use) if use else "a region")
    rows = np.unique(situation.lane[users])
    task = situation.task
    removed = share * min(1.0, falsely / max(samples, 1)) * float(task.use.lines.sum())
    other = task.with_lines(_less(task.use.lines, rows, removed))
    instead = alone(other)
    if not situation.gain(instead):
        return None
    count = sum(line.lines for line in lines)
    return situation.advice(
        "pad",
        instead,
        action=f"separate what {len(users)} threads use of {what}",
        evidence=f"false sharing: {count} cache line{'s' * (count != 1)}, the most used at {lines[0].place}, "
        f"each thread on its own bytes{made_at([use] if use else [])}",
        change=cure(lines, use.source.path if use and use.source else ""),
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
    several use; by the counted transfers where there are any, else by these samples.

    Transfers in pages that several regions share (small static data) are told of no region: they are of those
    that have none of their own."""
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
    weight = {region: float(count) for region, count in samples.items()}
    if taken:
        untold = sum(count for region, count in taken.items() if region < 0)
        rest = {region: count for region, count in weight.items() if region not in taken}
        whole = sum(rest.values()) or 1.0
        weight = taken | {region: untold * count / whole for region, count in rest.items()}
        weight = {region: count for region, count in weight.items() if region >= 0}
    total = sum(weight.values()) or 1.0
    return {region: (weight.get(region, 0.0) / total, count) for region, count in samples.items()}
