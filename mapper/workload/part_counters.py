"""What counters, which are of whole recordings, say of a part of one."""

from typing import TYPE_CHECKING

import numpy as np

from ..threads.problem import Floats

if TYPE_CHECKING:
    from numaplan.analyzer import Analysis, TraceSamples
    from numaplan.profiler import Trace

# Of lines that others wrote: taken from their caches, within one last-level cache, and found in that.
TAKEN, WITHIN, KEPT = "coherence", "coherence_within_l3", "l3_hits_on_others_lines"
_TRANSFERS = "SELECT coalesce(sum(events), 0)::DOUBLE FROM transfers WHERE writer <> reader"


def counters_of(whole: "Trace", trace: "Trace") -> dict[str, Floats]:
    """(N,) total of each event that was counted, by thread; -1 for threads without that counter.

    Of a part each thread has as much as its share of the samples is, and of lines that others wrote as much
    as the part has of all transfers, where these were counted.
    """
    from numaplan.analyzer import counter_totals

    totals = counter_totals(whole)
    if trace.part is None or not totals:
        return totals
    threads = len(next(iter(totals.values())))
    mine, all_of_them = (_samples(one, threads) for one in (trace, whole))
    share = mine / np.maximum(all_of_them, 1.0)
    (moved,), (all_moved,) = trace.rows(_TRANSFERS)[0], whole.rows(_TRANSFERS)[0]
    of_lines = np.full(threads, moved / all_moved) if all_moved else share
    return {
        name: np.where(values < 0, values, values * (of_lines if name in (TAKEN, WITHIN, KEPT) else share))
        for name, values in totals.items()
    }


def all_transfers(trace: "Trace", samples: "TraceSamples", analysis: "Analysis") -> Floats:
    """(N, N) transfers between threads, those in variables of runtimes and C libraries, too, where they were
    counted, as each of them moves a line; else the analysis' matrix."""
    from numaplan.analyzer import transfers_of

    known = transfers_of(trace, samples.regions.process, np.zeros_like(samples.regions.runtimes))
    return analysis.comm if known is None or known.partial else known.communication().matrix


def _samples(trace: "Trace", threads: int) -> Floats:
    """(N,) of each thread."""
    found = np.zeros(threads)
    for thread, count in trace.rows("SELECT thread, count(*) FROM samples WHERE thread >= 0 GROUP BY ALL"):
        if thread < threads:
            found[thread] = count
    return found
