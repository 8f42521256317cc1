"""Several traces as one: the mean of a program's runs, a job's ranks side by side; and what differs."""

import mmap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from numaplan.common import UsageError

from ..analyzed import Analysis, ThreadInfo
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
    places = [np.array([index[key] for key in thread_keys(analysis)]) for analysis in analyses]
    present, loads, misses = np.zeros((3, len(keys)))
    for analysis, place in zip(analyses, places, strict=True):
        present[place] += 1
        loads[place] += analysis.loads
        misses[place] += analysis.misses
    comm, error, separate = _merged_matrices(analyses, places, present)
    timeline = _merged_timeline(analyses, places, present)
    ranges = divide_phases(timeline.smoothed)
    return replace(
        analyses[0],
        threads=_merged_threads(analyses, places, len(keys)),
        comm=comm,
        standard_error=error,
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
    analyses: Sequence[Analysis], places: Sequence[NDArray[np.int64]], present: Matrix
) -> tuple[Matrix, Matrix, bool]:
    """(N, N) communication and its standard error, and whether some threads were never recorded together.

    Of ranks recorded apart only the blocks on the diagonal are written: of all the rest, which is nearly
    everything where there are many, the system need not even give us memory.
    """
    if present.max() == 1:
        comm, error = _mostly_empty(len(present)), _mostly_empty(len(present))
        for analysis, place in zip(analyses, places, strict=True):
            both = np.ix_(place, place)
            comm[both], error[both] = analysis.comm, analysis.standard_error
        return comm, error, True
    comm, error = np.zeros((2, len(present), len(present)))
    together = np.zeros(comm.shape, np.int32)
    for analysis, place in zip(analyses, places, strict=True):
        both = np.ix_(place, place)
        together[both] += 1
        comm[both] += analysis.comm
        error[both] += analysis.standard_error**2
    separate = bool((together == 0).any())
    np.maximum(together, 1, out=together)
    comm /= together
    np.sqrt(error, out=error)
    error /= together
    return comm, error, separate


def _mostly_empty(count: int) -> Matrix:
    """(N, N) zeros of which only what is written takes memory, in no huge pages, as numpy asks for."""
    memory = mmap.mmap(-1, count * count * 8)
    with suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory).reshape(count, count)


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
