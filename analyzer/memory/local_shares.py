"""How much of what was counted was local where the program ran: where the kernel had put its pages."""

import msgspec

from numaplan.profiler import Trace

_SUMS = (
    "SELECT sum(loads::DOUBLE + stores), sum(loads::DOUBLE + stores) FILTER (local = 1), "
    "sum(missed::DOUBLE) FILTER (missed > 0), sum(missed::DOUBLE) FILTER (missed > 0 AND local = 1) "
    "FROM page_use WHERE local >= 0 AND loads >= 0 AND stores >= 0"
)


class LocalShares(msgspec.Struct, frozen=True):
    """accesses: share of those by cpus of the page's node; memory: the same of what no cache answered, -1:
    nothing reached memory, or it is not known."""

    accesses: float
    memory: float


def local_shares_counted(trace: Trace) -> LocalShares | None:
    """Of a recording of every access that tells where pages were (the lab's); None: it does not."""
    ((made, made_local, missed, missed_local),) = trace.rows(_SUMS)
    if not made:
        return None
    return LocalShares((made_local or 0.0) / made, (missed_local or 0.0) / missed if missed else -1.0)
