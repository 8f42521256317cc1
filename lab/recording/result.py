"""A recording from what the plugin, the kernel's trace and the preload library left of a run in the guest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.machine import Machine
from numaplan.profiler import (
    THREAD_RECORD,
    ProcessSpool,
    Progress,
    RecordedPart,
    Recording,
    RecordRequest,
    emulated_recording,
    read_identity,
    runtime_filter,
    translated_identity,
)

from ..guest.guest import Outcome
from ..guest.shape import node_order
from ..runs.counts import RECORDED, Counts, parse_counts
from ..runs.tasks import Task, read_tasks
from ..runs.threads import Starter, name_tasks
from .blocks import Makers, guest_nodes, sample_blocks
from .clocks import AccessLine, GuestClock, Times
from .exact import ExactCounts
from .options import LabOptions
from .stream import Facts, read_facts

_LAST = 1 << 62
_NAMES = THREAD_RECORD.names or ()
_COUNTED = _NAMES[_NAMES.index("loads") : _NAMES.index("lost")]


@dataclass(frozen=True)
class Run:
    """A program's run in a guest. guest, identity, trace: where what was seen of it lies; seconds: it took;
    spans: [from, to) by the host's CLOCK_MONOTONIC that were to be recorded, None for all of it.
    """

    outcome: Outcome
    guest: Path
    trace: Path
    identity: Path
    machine: Machine
    seconds: float
    spans: Sequence[tuple[int, int]] | None = None


def guest_recording(run: Run, request: RecordRequest, options: LabOptions, progress: Progress) -> Recording:
    """The recording of a run; raises UsageError where there is none."""
    facts = read_facts(run.guest)
    machine = run.machine
    counts = parse_counts(run.outcome.counts, len(machine.cpus), len(machine.nodes))
    tasks = read_tasks(run.trace, counts)
    family = name_tasks(tasks, counts, Starter.PROGRAM)
    clock = GuestClock(run.outcome.moments)
    identity = read_identity(run.identity)
    images = _process_images(family, counts, facts)
    makers = Makers(tasks, family, images, clock)
    line = makers.line(run.guest, request.period, sum(_total(image) for image in images))
    keep = runtime_filter(identity, images, options.emulation.drop_runtime)

    def passed(_pid: int, guest_ns: Times) -> Times:
        return np.where(guest_ns < 0, -1, line(clock.host(guest_ns)))

    exact = ExactCounts(
        run.guest,
        makers,
        line,
        run.outcome.moments[1][1],
        keep,
        guest_nodes(machine),
        options.emulation.cached,
    )
    counts_lines, counts_pages = options.emulation.transfers, options.emulation.page_use
    blocks = partial(sample_blocks, run.guest, machine, makers, line, partial(progress, "reading samples"))
    recording = emulated_recording(
        [_on_line(image, passed) for image in images],
        options.emulation,
        translated_identity(identity, passed),
        keep,
        blocks,
        exit_code=run.outcome.exit_code,
        start_ns=0,
        notes={
            **{f"emulate.{name}": value for name, _, value in (w.partition("=") for w in options.plugin)},
            "emulate.host_seconds": f"{run.seconds:.3f}",
            "clock": "accesses",
            "node_memory": _memory_words(facts, machine),
            **({"transfers_between": "processes"} if counts_lines else {}),
        },
        transfers=exact.transfers() if counts_lines else None,
        page_use=exact.page_use if counts_pages else None,
        running=exact.running(),
    )
    return replace(recording, spans=_spans(run.spans, request.part, line), counted_spans=True)


def _process_images(family: Sequence[Task], counts: Counts, facts: Facts) -> list[ProcessSpool]:
    """Each process's images by their start (guest's clock); the last has the threads and their counts."""
    processes: dict[str, list[Task]] = {}
    for task in family:
        processes.setdefault(task.process, []).append(task)
    starts = {tasks[0].tid: [tasks[0].born_ns, *tasks[0].exec_ns] for tasks in processes.values()}
    pid_of = {task.tid: tasks[0].tid for tasks in processes.values() for task in tasks}
    images: list[ProcessSpool] = []
    for tasks in processes.values():
        pid, born = tasks[0].tid, tasks[0].born_ns
        creator = pid_of.get(tasks[0].parent, 0)
        before = [start for start in starts.get(creator, ()) if start <= born]
        for number, start in enumerate(starts[pid], start=1):
            images.append(
                ProcessSpool(
                    Path(),
                    pid,
                    start,
                    0,
                    _thread_rows(tasks if number == len(starts[pid]) else (), counts),
                    origin=(creator, before[-1]) if before and number == 1 else (0, 0),
                    footprint=0 if images else facts.footprint,
                )
            )
    if images and len(images[0].threads):
        images[0].threads["lost"][0] = facts.lost
    return sorted(images, key=lambda image: image.start_ns)


def _thread_rows(tasks: Sequence[Task], counts: Counts) -> NDArray[np.void]:
    rows = np.zeros(len(tasks), THREAD_RECORD)
    for birth, (row, task) in enumerate(zip(rows, tasks, strict=True)):
        row["tid"], row["birth"] = task.tid, birth
        row["start_ns"], row["end_ns"] = task.born_ns, task.end_ns
        recorded = task.counted(counts)[:, -RECORDED:].sum(axis=0)
        for name, value in zip(_COUNTED, recorded, strict=False):
            row[name] = value
        row["sleeps"] = -1
        row["past"] = recorded[len(_COUNTED) :].reshape(2, -1)
    return rows


def _spans(
    spans: Sequence[tuple[int, int]] | None, part: RecordedPart, line: AccessLine
) -> list[tuple[int, int]] | None:
    """What of the recording was asked for, in accesses; None: all of it."""
    if spans is not None:
        borders = line(np.array(spans, np.int64).ravel()).reshape(-1, 2)
        spans = [(int(start), int(end)) for start, end in borders if end > start]
    skip, take = part.skip_accesses, part.take_accesses
    if spans == [] or not (skip or take):
        return None if spans is None else list(spans)
    first = spans[0][0] if spans else skip
    return [(first, first + take if take else _LAST)]


def _total(image: ProcessSpool) -> int:
    return int(image.threads["loads"].sum() + image.threads["stores"].sum())


def _on_line(image: ProcessSpool, passed: Callable[[int, Times], Times]) -> ProcessSpool:
    """The image with its times in accesses."""
    threads = image.threads.copy()
    for name in ("start_ns", "end_ns"):
        threads[name] = passed(image.pid, threads[name])
    ends = passed(image.pid, np.array([image.start_ns, _LAST], np.int64)).tolist()
    return replace(image, threads=threads, first_ns=ends[0], last_ns=ends[1])


def _memory_words(facts: Facts, machine: Machine) -> str:
    """Which physical addresses are whose: NODE:FIRST-END (hex), with commas."""
    ids = [machine.nodes[row].id for row in node_order(machine)]
    return ",".join(f"{ids[node]}:{first:x}-{first + count:x}" for node, first, count in facts.memory)
