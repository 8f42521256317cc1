"""What matters for placement, in sentences."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .analyzed import Analysis
from .groups import close_groups, main_region, main_times, thread_list
from .memory.false_sharing import FalseSharing
from .memory.page_counts import PageCounts
from .memory.regions import RegionUse

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_GROUPS = 8
MOST_PAIRS = 16
FEW_SAMPLES = 10  # a thread; fewer tell nothing of load
UNEVEN = 0.2
NEAR = 2  # slices within which two borders of phases are the same


def placement_summary(
    analysis: Analysis,
    regions: Sequence[RegionUse],
    lines: Sequence[FalseSharing] = (),
    pages: PageCounts | None = None,
) -> list[str]:
    """Sentences on who belongs together, how uneven the load is, and what memory is shared, how.

    pages: of the same trace, to tell where groups of threads exchange.
    """
    return [
        *_partners(analysis, regions, pages),
        *_load(analysis),
        *_changes(analysis),
        *_local(analysis),
        *_memory(analysis, regions),
        *_false_sharing(regions, lines),
    ]


def _partners(analysis: Analysis, regions: Sequence[RegionUse], pages: PageCounts | None) -> list[str]:
    total = analysis.pairs.total() / 2
    if total <= 0 or len(analysis.threads) < 3:
        return []
    comm = analysis.pairs.entries()
    sentences = []
    names = analysis.names
    groups = close_groups(analysis)[:MOST_GROUPS]
    where = [main_region(group, regions, pages) for group in groups]
    if len(groups) > 1 and len(set(where)) == 1:
        where = [""] * len(groups)  # said once, with the memory
    for group, place in zip(groups, where, strict=True):
        inside = float(comm[group][:, group].sum()) / 2
        listed = thread_list([names[index] for index in group])
        closer = place + main_times(group, analysis)
        sentences.append(
            f"threads {listed} exchange {inside / total:.0%} of all communication among themselves{closer}"
        )
    if not sentences:
        sentences += _strongest_pairs(comm, analysis.names, total)
    strongest = comm.sum(axis=1)
    first = int(np.argmax(strongest))
    if strongest[first] > 2 * float(np.median(strongest)) > 0:
        sentences.append(
            f"thread {names[first]} takes part in {strongest[first] / total:.0%} of all communication"
        )
    return sentences


def _strongest_pairs(comm: "csr_array", names: Sequence[str], total: float) -> list[str]:
    """The fewest pairs that carry half of all communication, where that tells something."""
    rows, columns = comm.nonzero()
    once = rows < columns
    rows, columns, pairs = rows[once], columns[once], comm.data[once]
    order = np.argsort(-pairs, kind="stable")
    needed = int(np.searchsorted(np.cumsum(pairs[order]), total / 2)) + 1
    if needed > len(names) * (len(names) - 1) / 8 or needed > MOST_PAIRS:
        return []
    named = (f"{names[rows[pair]]}–{names[columns[pair]]}" for pair in order[:needed].tolist())
    share = float(pairs[order[:needed]].sum()) / total
    return [f"{share:.0%} of all communication is between {needed} pairs of threads: {', '.join(named)}"]


def _load(analysis: Analysis) -> list[str]:
    loads = analysis.loads
    mean = float(loads.mean())
    if mean <= 0 or len(loads) < 2:
        return []
    highest = int(np.argmax(loads))
    samples = [
        thread.dram_samples if analysis.load_source == "dram" else thread.samples
        for thread in analysis.threads
    ]
    expected = sum(samples) / len(samples)
    if expected < FEW_SAMPLES:
        return []
    excess = float(loads[highest]) / mean - 1
    # The highest of N equal loads stands out by about sqrt(2 ln N) standard deviations; two more are sure.
    chance = (np.sqrt(2 * np.log(len(loads))) + 2) / np.sqrt(expected)
    if excess < UNEVEN or excess < chance:
        what = "miss the last cache" if analysis.load_source == "dram" else "access memory"
        return [f"the threads {what} about equally often"]
    return [
        f"load is uneven: thread {analysis.names[highest]} has {loads[highest] / mean:.1f} times the mean"
    ]


def _changes(analysis: Analysis) -> list[str]:
    kinds = {
        "the threads' rates of access change": analysis.changes,
        "threads begin to communicate with others": analysis.partner_changes,
    }
    sentences = [f"{what} at {_times(analysis, places)}" for what, places in kinds.items() if places]
    borders = {*analysis.changes, *analysis.partner_changes}
    if borders:
        known = [phase.start for phase in analysis.phases[1:]]
        found = sum(any(abs(at - border) <= NEAR for border in known) for at in borders)
        share = f"{found} of {len(borders)}" if found else "none"
        sentences.append(f"phases by the sum of all loads (Algorithm 1) begin at {share} of these times")
    return sentences


def _times(analysis: Analysis, places: Sequence[int]) -> str:
    shown = ", ".join(map(analysis.timeline.moment, places[:MOST_GROUPS]))
    more = f" and {len(places) - MOST_GROUPS} more times" if len(places) > MOST_GROUPS else ""
    return f"{shown} {analysis.timeline.unit}{more}"


def _local(analysis: Analysis) -> list[str]:
    if analysis.local is None:
        return []
    memory = analysis.local.memory
    reached = f", {memory:.1%} of those that reached memory" if memory >= 0 else ""
    return [f"{analysis.local.accesses:.1%} of accesses were local as the program ran{reached}"]


def _memory(analysis: Analysis, regions: Sequence[RegionUse]) -> list[str]:
    total = sum(region.samples for region in regions)
    if not total:
        return []
    sentences = []
    shared = max(regions, key=lambda region: region.samples * region.shared_writes)
    if shared.sharers > 1 and shared.shared_writes > 0:
        told = shared.source is not None  # which tells the size, too
        sentences.append(
            f"most write-shared accesses are in {shared.title} "
            f"({'' if told else f'{shared.bytes / 1024:,.0f} KiB, '}{shared.sharers} threads)"
        )
    foreign = np.array([use.samples * use.foreign_first for use in regions])
    if foreign.sum() > 0.1 * total:
        worst = regions[int(np.argmax(foreign))]
        sentences.append(
            f"{foreign.sum() / total:.0%} of accesses go to pages that another thread touched first, mostly "
            f"in {worst.title} (first touched by thread {analysis.names[worst.first_toucher]}): "
            "first touch would place them on the wrong node"
        )
    return sentences


def _false_sharing(regions: Sequence[RegionUse], lines: Sequence[FalseSharing]) -> list[str]:
    total = sum(region.samples for region in regions)
    if not lines or not total:
        return []
    names = {use.region: use.title for use in regions}
    worst = lines[0]
    share = sum(line.samples for line in lines) / total
    count = sum(line.lines for line in lines)
    return [
        f"false sharing: {count} cache line{'s' if count > 1 else ''} with {share:.1%} of accesses "
        f"are used by several threads, each on its own bytes, the most at {worst.place} of "
        f"{names.get(worst.region, 'a region')} ({len(worst.threads)} threads): separate them by padding"
    ]
