"""Several traces as one: the mean of a program's runs, a job's ranks side by side; and what differs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from numaplan.common import UsageError

from ..analyzed import Analysis, ThreadInfo
from ..communication.side_by_side import Met, SideBySide
from ..notes import RECORDED_APART
from ..timeline.changes import change_points
from ..timeline.phases import describe_phases, divide_phases
from ..timeline.timeline import Timeline
from .stability import compare_runs, thread_keys

SIGNIFICANT = 3.0  # standard errors from which a difference is not taken for chance

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """What changed from one run to another, over the threads of both.

    threads: (process, path); comm: (N, N) change in the share of all communication (second minus first);
    sure: (N, N) whether it exceeds three standard errors; loads: (N,) change in the share of all load.
    """

    threads: list[tuple[str, str]]
    comm: Matrix
    sure: NDArray[np.bool_]
    loads: Matrix


def merge_analyses(analyses: Sequence[Analysis]) -> Analysis:
    """One analysis of several: a mean a run of what several runs have, side by side what only one has.

    Runs of one program have the same threads, ranks of a job recorded apart have threads of their own; so
    entries are means over the traces in which both threads occur, and 0 where none has both. Times are taken
    from the start of each recording. Raises UsageError when none is given or loads count different things.
    """
    if not analyses:
        raise UsageError("no trace to merge", "name one or more")
    if len(analyses) == 1:
        return analyses[0]
    if len({analysis.load_source for analysis in analyses}) > 1:
        raise UsageError(
            "one trace has enough last-level cache misses to count load by, another has not",
            "record all with the same backend and period",
        )
    keys = list(dict.fromkeys(key for analysis in analyses for key in thread_keys(analysis)))
    index = {key: number for number, key in enumerate(keys)}
    places = [np.array([index[key] for key in thread_keys(analysis)], np.int64) for analysis in analyses]
    present, loads, misses = np.zeros((3, len(keys)))
    for analysis, place in zip(analyses, places, strict=True):
        present[place] += 1
        loads[place] += analysis.loads
        misses[place] += analysis.misses
    pairs, errors, separate = _merged_matrices(analyses, places, len(keys))
    timeline = _merged_timeline(analyses, places, present)
    ranges = divide_phases(timeline.smoothed)
    return replace(
        analyses[0],
        threads=_merged_threads(analyses, places, len(keys)),
        pairs=pairs,
        pair_errors=errors,
        loads=loads / present,
        misses=misses / present,
        timeline=timeline,
        phases=describe_phases(timeline.per_thread, ranges),
        changes=change_points(timeline.per_thread),
        partner_changes=[],
        exchanges=np.zeros((0, 0), np.int32),
        confidence=_merged_confidence(analyses, separate),
        events=sum(analysis.events for analysis in analyses),
        left_out=sum(analysis.left_out for analysis in analyses),
        samples=sum(analysis.samples for analysis in analyses),
        shared_samples=sum(analysis.shared_samples for analysis in analyses),
        notes=_merged_notes(analyses, separate),
    )


def _merged_matrices(
    analyses: Sequence[Analysis], places: Sequence[NDArray[np.int64]], count: int
) -> tuple[SideBySide, SideBySide, bool]:
    """Communication and its standard error, and whether some threads were never recorded together.

    Ranks recorded apart stay as they are; only recordings that have threads in common are joined.
    """
    comms = _renumbered([analysis.pairs for analysis in analyses], places)
    errors = _renumbered([analysis.pair_errors for analysis in analyses], places)
    joined = [
        _mean_of_runs([comms[number] for number in own], [errors[number] for number in own])
        for own in _with_common_threads([part.members for part in comms], count)
    ]
    pairs, pair_errors, separate = zip(*joined, strict=True)
    return SideBySide(count, pairs), SideBySide(count, pair_errors), len(joined) > 1 or any(separate)


def _renumbered(matrices: Sequence[SideBySide], places: Sequence[NDArray[np.int64]]) -> list[Met]:
    """The parts of all, with the numbers that their threads have in the whole."""
    return [
        Met(place[part.members], part.matrix)
        for matrix, place in zip(matrices, places, strict=True)
        for part in matrix.parts
    ]


def _with_common_threads(members: Sequence[NDArray[np.int64]], count: int) -> list[list[int]]:
    """Which recordings have threads in common, be it by way of a third one, in the order of their first."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    first = np.concatenate([np.full(len(own), own[0]) for own in members])
    edges = csr_array((np.ones(len(first)), (first, np.concatenate(members))), (count, count))
    _, label = connected_components(edges, directed=False)
    found: dict[int, list[int]] = {}
    for number, own in enumerate(members):
        found.setdefault(int(label[own[0]]), []).append(number)
    return list(found.values())


def _mean_of_runs(comms: Sequence[Met], errors: Sequence[Met]) -> tuple[Met, Met, bool]:
    """Of recordings that have threads in common, and whether some of their threads never met."""
    if len(comms) == 1:
        return comms[0], errors[0], False
    members = np.unique(np.concatenate([part.members for part in comms]))
    comm, error = np.zeros((2, len(members), len(members)))
    together = np.zeros(comm.shape, np.int32)
    for part, spread in zip(comms, errors, strict=True):
        place = np.searchsorted(members, part.members)
        both = np.ix_(place, place)
        together[both] += 1
        comm[both] += part.matrix
        error[both] += spread.matrix**2
    separate = bool((together == 0).any())
    np.maximum(together, 1, out=together)
    comm /= together
    np.sqrt(error, out=error)
    error /= together
    return Met(members, comm), Met(members, error), separate


def compare_traces(first: Analysis, second: Analysis) -> Difference:
    """What differs between two runs; raises UsageError when they have fewer than two threads in common."""
    common = compare_runs(first, second).threads
    shares, errors, loads = [], [], []
    for analysis in (first, second):
        index = {key: number for number, key in enumerate(thread_keys(analysis))}
        place = np.array([index[key] for key in common])
        total = float(analysis.comm.sum()) / 2 or 1.0
        shares.append(analysis.comm[np.ix_(place, place)] / total)
        # Of what was counted, no two runs have quite as much.
        error = np.maximum(analysis.standard_error, np.sqrt(analysis.comm))
        errors.append(error[np.ix_(place, place)] / total)
        loads.append(analysis.loads[place] / (float(analysis.loads.sum()) or 1.0))
    change = shares[1] - shares[0]
    error = np.hypot(errors[0], errors[1])
    return Difference(common, change, np.abs(change) > SIGNIFICANT * error, loads[1] - loads[0])


def _merged_threads(
    analyses: Sequence[Analysis], places: Sequence[NDArray[np.int64]], count: int
) -> list[ThreadInfo]:
    merged: list[ThreadInfo | None] = [None] * count
    for analysis, place in zip(analyses, places, strict=True):
        for at, info in zip(place.tolist(), analysis.threads, strict=True):
            known = merged[at]
            samples = info.samples + (known.samples if known else 0)
            dram = info.dram_samples + (known.dram_samples if known else 0)
            merged[at] = replace(known or info, thread=at, samples=samples, dram_samples=dram)
    return [info for info in merged if info is not None]


def _merged_timeline(
    analyses: Sequence[Analysis], places: Sequence[NDArray[np.int64]], present: Matrix
) -> Timeline:
    """Slices as wide as the widest, counted from the start of each recording."""
    width = max(analysis.timeline.slice_ns for analysis in analyses)
    lines = [analysis.timeline for analysis in analyses]
    length = max(-(-len(line.per_thread) * line.slice_ns // width) for line in lines)
    cells = np.zeros((length, len(present)))
    for line, place in zip(lines, places, strict=True):
        at = np.arange(len(line.per_thread)) * line.slice_ns // width
        np.add.at(cells, np.ix_(at, place), line.per_thread)
    return Timeline(0, width, cells / present, all(line.in_accesses for line in lines))


def _merged_confidence(analyses: Sequence[Analysis], separate: bool) -> float:
    """The weakest trace's for ranks side by side; for runs what their mean reaches (Spearman-Brown)."""
    known = [analysis.confidence for analysis in analyses]
    if separate:
        return min(known)
    mean = float(np.mean(known))
    return len(known) * mean / (1 + (len(known) - 1) * mean)


def _merged_notes(analyses: Sequence[Analysis], separate: bool) -> list[str]:
    notes = list(dict.fromkeys(note for analysis in analyses for note in analysis.notes))
    if separate:
        notes.append(RECORDED_APART)
    return notes
