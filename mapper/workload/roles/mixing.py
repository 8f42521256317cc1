"""Threads that exchange lines with whoever of them comes: who takes whose task is chance, though each keeps
to its memory, so that the pairs of one run tell nothing of the next."""

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from ...threads.problem import Nodes
from ..use import ThreadUse
from .exchanged import exchanged_matrix
from .pools import pools_of
from .siblings import alike

if TYPE_CHECKING:
    from numaplan.analyzer import TraceSamples
    from numaplan.profiler import Trace

CHANCE = 0.4  # of the correlation between stretches of the run, below which pairs are taken for chance


def with_mixed(use: ThreadUse, trace: "Trace", samples: "TraceSamples", lane: Nodes) -> ThreadUse:
    """The use with the mean of what such threads exchange, of a trace whose transfers were all counted.

    lane: (N,) equal for threads that follow one another.
    """
    groups = _mixed_groups(use, trace, samples, lane)
    if not groups:
        return use
    chance = np.zeros_like(use.lines)
    for group in groups:
        own = use.lines[np.ix_(group, group)]
        chance[np.ix_(group, group)] = own[~np.eye(len(own), dtype=bool)].std()
    return replace(use.dealt(lambda lines: exchanged_matrix(lines, groups)), chance=chance)


def _mixed_groups(use: ThreadUse, trace: "Trace", samples: "TraceSamples", lane: Nodes) -> list[Nodes]:
    from numaplan.analyzer import pairs_kept, transfers_of

    transfers = transfers_of(trace, samples.regions.process, samples.regions.runtimes)
    if transfers is None:
        return []
    threads = [(row.process, row.path) for row in trace.thread_rows]
    names = [row.name for row in trace.thread_rows]
    taken, groups = use.lines.sum(axis=1), []
    for team in pools_of(threads, [False] * len(threads), names, use.accesses):
        group = team[alike(taken[team])]
        if pairs_kept(transfers, lane, group) < CHANCE:
            groups.append(group)
    return groups
