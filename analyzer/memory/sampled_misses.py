"""What counted accesses miss, where only samples tell: under caches of another size than the recorded one."""

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from .page_counts import Counts, PageCounts

Floats = NDArray[np.float64]


def without_misses(found: PageCounts) -> PageCounts:
    """The same where it is not known which accesses reach memory."""
    return replace(found, missed=None, missed_before=None, elsewhere_missed=None)


def with_sampled_misses(exact: PageCounts, sampled: PageCounts) -> PageCounts:
    """Counted accesses, each missing at the rate of its thread's samples of its region."""
    memory = sampled.memory_accesses
    if memory is None or sampled.missed is None or sampled.missed_before is None:
        return without_misses(exact)
    threads = 1 + max(int(part.thread.max(initial=-1)) for part in (exact, sampled))
    size = len(exact.regions) * threads
    cells = [part.region * threads + part.thread for part in (exact, sampled)]
    pairs = (
        (exact.accesses, sampled.accesses, sampled.missed),
        (_begun(exact), _begun(sampled), sampled.missed_before),
    )
    rates = [_rates(cells[1], made, missed, size)[cells[0]] for _, made, missed in pairs]
    missed, before = (rate * own for rate, (own, _, _) in zip(rates, pairs, strict=True))
    elsewhere = exact.elsewhere
    if elsewhere is not None and sampled.elsewhere is not None and sampled.elsewhere_missed is not None:
        made = sampled.elsewhere
        rate = np.divide(sampled.elsewhere_missed, made, out=np.zeros_like(made), where=made > 0)
        elsewhere = elsewhere * rate
    return replace(exact, missed=missed, missed_before=before, elsewhere_missed=elsewhere)


def _begun(counts: PageCounts) -> Floats:
    return np.zeros(len(counts)) if counts.before is None else counts.before.astype(np.float64)


def _rates(cell: NDArray[np.int64], made: Counts, missed: Counts, size: int) -> Floats:
    """(size,) misses an access by cell; 0 where no access was sampled."""
    all_made, all_missed = (np.bincount(cell, part, size).astype(np.float64) for part in (made, missed))
    answer: Floats = np.divide(all_missed, all_made, out=np.zeros_like(all_made), where=all_made > 0)
    return answer
