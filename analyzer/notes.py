"""What limits the trust in an analysis, in sentences; the most important first."""

import signal

import numpy as np
from numpy.typing import NDArray

from numaplan.common import ended_by
from numaplan.machine import size_word
from numaplan.profiler import Trace

from .communication.combining import Communication
from .samples.cache_sizes import modelled_sizes
from .samples.periods import periods_note
from .timeline.timeline import Timeline

DOUBTFUL = 0.5
UNIFORM = 0.05
FEW_MISSES = "loads count all accesses: too few of them missed the last cache"
RECORDED_APART = "threads of separately recorded traces: what they exchange with each other cannot be seen"
BUSY = 0.05  # of all samples, from which a process counts
UNSEEN_BETWEEN = "nothing shows what processes exchange: emulation does not count it, --backend lab does"
STOPPED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP)  # whoever meant to end it
FEW_EVENTS = 20  # events a pair of threads that is needed to tell pairs apart


def first_touches_only(trace: Trace) -> bool:
    """Whether all samples are of page faults: who uses what another thread touched first is not seen."""
    if trace.rows("SELECT 1 FROM samples WHERE event <> 'fault' LIMIT 1"):
        return False
    return bool(trace.rows("SELECT 1 FROM samples LIMIT 1"))


def is_uniform(matrix: NDArray[np.float64], standard_error: NDArray[np.float64]) -> bool:
    """Whether the pairs of an (N, N) matrix differ no more than their errors, and little."""
    upper = np.triu_indices(len(matrix), 1)
    entries, errors = matrix[upper], standard_error[upper]
    if len(entries) < 2:
        return False
    mean = float(entries.mean())
    chance = float((errors**2).mean())
    return float(entries.var()) < chance + (UNIFORM * mean) ** 2 and chance < mean**2 / 4


def communication_note(found: Communication, threads: int, shared: int, writes: int) -> list[str]:
    """At most one sentence; shared: samples that may be communication, writes: those that wrote."""
    if threads == 1:
        return ["one thread only: there is no communication to place by"]
    if not shared:
        return ["no sample is of shared memory: all are of stacks or threading runtimes, or lack an address"]
    if not writes:
        return ["no sample is a write: threads that only read memory do not communicate"]
    if found.events == 0:
        return ["no communication was seen: no block was written by one thread and touched by another"]
    if is_uniform(found.matrix, found.standard_error):
        return ["all pairs of threads communicate about equally: any balanced placement costs the same"]
    if found.confidence < DOUBTFUL:
        return [
            f"the communication matrix is doubtful (confidence {found.confidence:.2f}): record longer or "
            "with a smaller --period"
        ]
    if found.events < FEW_EVENTS * threads and "counted" not in found.weights:
        return [f"only {found.events} communication events were seen: small entries are mostly chance"]
    return []


def processes_note(
    found: Communication, process: NDArray[np.uint64], samples: NDArray[np.int64]
) -> list[str]:
    """Whether processes may exchange what was not counted, of which samples show nothing; process, samples:
    (N,) of each thread."""
    across = process[:, None] != process[None, :]
    _, number = np.unique(process, return_inverse=True)
    busy = np.bincount(number, samples) >= BUSY * samples.sum()
    if np.count_nonzero(busy) < 2 or found.matrix[across].any():
        return []
    return [UNSEEN_BETWEEN]


def take_turns(timeline: Timeline) -> bool:
    """Whether no two threads access memory at the same time: each is done before the next one begins."""
    active = timeline.per_thread > 0
    used = np.flatnonzero(active.any(axis=0))
    if len(used) < 2:
        return False
    first = active[:, used].argmax(axis=0)
    last = len(active) - 1 - active[::-1, used].argmax(axis=0)
    order = np.argsort(first, kind="stable")
    return bool((first[order][1:] > last[order][:-1]).all())


def input_note(trace: Trace) -> list[str]:
    """Which input the recording stands for, where that is said."""
    sizes, stated = modelled_sizes(trace), int(trace.meta.get("for_footprint", "0"))
    chosen, own = (int(trace.meta.get(name, "0")) for name in ("for_llc", "footprint"))
    if not stated or chosen not in sizes:
        return []
    used = f"recorded with {own / (1 << 20):,.1f}M of memory"
    if stated < own:
        return [f"{used}, more than the {size_word(stated)} of --for-footprint: it stands for its own input"]
    if chosen == sizes[-1]:
        near = "is near enough that the last-level cache stays as it is"
        return [f"{used} for an input of {size_word(stated)}, which {near}"]
    too_large = own * sizes[-1] * 1.5 < sizes[0] * stated
    bound = " (the smallest that is modelled, larger than it should be)" if too_large else ""
    return [
        f"{used} for an input of {size_word(stated)}: what a "
        f"last-level cache of {size_word(chosen)} instead of {size_word(sizes[-1])} misses is taken to reach "
        f"memory{bound}"
    ]


def ended_note(trace: Trace) -> list[str]:
    """Whether the program may have failed before it did what it is recorded for."""
    exit_code = int(trace.meta.get("exit_code", "0"))
    number = ended_by(exit_code)
    if exit_code == 0 or number in STOPPED_BY:
        return []
    ended = f"was ended by {number.name}" if number else f"exited with {exit_code}"
    return [f"the recorded program {ended}: if it failed, this is of what it did before"]


def recording_notes(
    trace: Trace, samples_of_thread: NDArray[np.int64], *, use_dram: bool, backwards: bool = False
) -> list[str]:
    """What the recording lacks.

    samples_of_thread: (2, N) samples of each thread, all and those that missed the cache;
    backwards: whether a thread's samples were not in order of time.
    """
    notes = []
    if backwards:
        notes.append("times run backwards within a thread: samples were put in order of their times")
    if not use_dram:
        notes.append(FEW_MISSES)
    silent = int((samples_of_thread[0] == 0).sum())
    if silent:
        notes.append(f"{silent} of {samples_of_thread.shape[1]} threads have no sample")
    notes += periods_note(trace.meta) + input_note(trace)
    lost = trace.rows("SELECT coalesce(sum(events), 0) FROM losses")[0][0]
    if lost:
        notes.append(f"{int(lost)} samples were lost while recording")
    if first_touches_only(trace):
        notes.append(
            "recorded from page faults: first touches only, too little to show which threads communicate"
        )
    return notes
