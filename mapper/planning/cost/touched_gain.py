"""What is gained where memory is touched first by who uses it, instead of being placed."""

import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from numaplan.analyzer import PageCounts

from ...memory.run_table import RunTable
from ...memory.site_rules import Site, site_of
from ...memory.traffic import planned_traffic
from ...threads.problem import Floats, Nodes


def touched_gain(
    stats: PageCounts,
    known: PageCounts,
    near: Floats,
    tables: Mapping[int, RunTable],
    rows: Nodes,
    nodes: int,
) -> dict[Site, float]:
    """What share of the accesses becomes local where a site's regions are touched first instead of placed; of
    sites with tables, all of which have a home.

    stats: the accesses; known: those to pages whose first touch is known; near: (N, N) the share 0..1 of the
    one's accesses to what the other touched that are local; rows: (N,) row of each thread's node, of so many.
    """
    count = len(stats.regions)
    if known.toucher is None:
        return {}
    homes = planned_traffic(stats, tables, rows, nodes)[1]
    users = (stats.thread >= 0) & (stats.thread < len(rows))
    here = np.where(users & (homes == rows[np.clip(stats.thread, 0, len(rows) - 1)]), stats.accesses, 0.0)
    found = (known.thread >= 0) & (known.thread < len(rows)) & (known.toucher >= 0)
    found &= known.toucher < len(rows)
    user, toucher = known.thread[found], known.toucher[found]
    there = known.accesses[found] * near[user, toucher]
    gain = np.bincount(known.region[found], there, count) - np.bincount(stats.region, here, count)
    share = gain / max(float(stats.accesses.sum()), 1e-300)
    answer: dict[Site, float] = defaultdict(float)
    for number, table in tables.items():
        moves = table.interleave or table.next_touch
        answer[site_of(table.key)] += -math.inf if moves else float(share[number])
    return {site: much for site, much in answer.items() if much > -math.inf}
