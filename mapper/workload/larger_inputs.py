"""What would reach memory with larger inputs than the recorded one, where a recording tells.

A recording is of a small input. Under one that is 16 times as large, a thread's share of the last-level cache
is a 16th: what reaches memory then is what a cache misses that is so much smaller (analyzer: cache_sizes).
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.profiler import Trace

if TYPE_CHECKING:
    from numaplan.analyzer import TraceSamples

TIMES = (4, 32, 256)  # as large as the recorded input
MOST_BYTES = 1 << 62
NEAR = 1.5  # how much larger a cache may be than the one that stands for an input
ALIKE = 0.02  # of the accesses that reach memory, below which an input is like a smaller one


class LargerInput(msgspec.Struct, frozen=True):
    """times: how many times as large as what the recording stands for; bytes: of memory that it uses then, 0:
    not known; pages: the recorded ones, with what would reach memory of them."""

    times: int
    bytes: int
    pages: PageCounts


def larger_inputs(
    trace: Trace, pages: PageCounts, count: "Callable[[TraceSamples], PageCounts]"
) -> tuple[LargerInput, ...]:
    """Of a trace whose pages have been counted; count: the same for other samples of it.

    Inputs that differ in nothing from smaller ones are left out, but for the largest.
    """
    from numaplan.analyzer import TraceSamples, cache_sizes

    known = cache_sizes(trace)
    if known is None:
        return ()
    misses, recorded = known.missed.sum(axis=0), known.sizes[known.levels]
    stated = max(int(trace.meta.get("for_footprint", "0")), known.footprint)
    modelled = [times for times in TIMES if recorded / times >= known.sizes[0] / NEAR]
    found, seen = [], misses[known.levels] * (1 + ALIKE)
    for times in modelled:
        ratio = recorded / times / known.sizes[-1]
        missed = misses[known.place(ratio)]
        if missed <= seen and times != modelled[-1]:
            continue
        counted = pages
        if missed > misses[known.levels] * (1 + ALIKE):
            counted = _with_misses(pages, count(TraceSamples(trace, cache_ratio=ratio)))
        found.append(LargerInput(times, min(stated * times, MOST_BYTES), counted))
        seen = missed * (1 + ALIKE)
    return tuple(found)


def _with_misses(pages: PageCounts, other: PageCounts) -> PageCounts:
    """The pages with what is known of misses by another count of them."""
    names: Sequence[str] = ("missed", "missed_before", "elsewhere_missed")
    return replace(pages, **{name: getattr(other, name) for name in names})
