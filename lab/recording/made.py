"""A recording from what the plugin, the kernel's trace and the preload library left of a run in the guest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from numaplan.machine import Machine
from numaplan.profiler import (
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
from ..runs.counts import parse_counts
from ..runs.tasks import read_tasks
from ..runs.threads import Starter, name_tasks
from .blocks import Makers, sample_blocks
from .clocks import AccessLine, GuestClock, Times
from .images import process_images
from .options import LabOptions
from .stream import Facts, read_facts

_LAST = 1 << 62


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


def made(run: Run, request: RecordRequest, options: LabOptions, progress: Progress) -> Recording:
    """The recording of a run; raises UsageError where there is none."""
    facts = read_facts(run.guest)
    machine = run.machine
    counts = parse_counts(run.outcome.counts, len(machine.cpus), len(machine.nodes))
    tasks = read_tasks(run.trace, counts)
    family = name_tasks(tasks, counts, Starter.PROGRAM)
    clock = GuestClock(run.outcome.moments)
    identity = read_identity(run.identity)
    images = process_images(family, counts, facts)
    makers = Makers(tasks, family, images, clock)
    line = makers.line(run.guest, request.period, sum(_total(image) for image in images))
    keep = runtime_filter(identity, images, options.emulation.drop_runtime)

    def passed(_pid: int, guest_ns: Times) -> Times:
        return np.where(guest_ns < 0, -1, line(clock.host(guest_ns)))

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
        },
    )
    return replace(recording, spans=_spans(run.spans, request.part, line))


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
