"""A recording from what an emulator's plugin counted and sampled of each process image."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from ...call_block import CallBlock
from ...identity.records import Identity
from ...page_use_block import PageUseBlock
from ...running_block import RunningBlock
from ...sample_block import SampleBlock, SeenThread
from ...transfer_block import TransferBlock
from ..base import Recording
from .filter import SampleFilter
from .footprint import Scale, scale_of
from .options import EmulateOptions
from .spool import EmulatedLevels, ProcessSpool

# (which samples stay, the levels to tell, how many caches these are of) -> blocks of samples.
Blocks = Callable[[SampleFilter, EmulatedLevels | None, int], Iterable[SampleBlock]]
# Whether the plugin's misses are those of the recording -> blocks of uses of pages.
PageUse = Callable[[bool], Iterable[PageUseBlock]]


def emulated_recording(
    processes: Sequence[ProcessSpool],
    options: EmulateOptions,
    identity: Identity,
    keep: SampleFilter,
    blocks: Blocks,
    *,
    exit_code: int,
    start_ns: int,
    notes: Mapping[str, str],
    transfers: Iterable[TransferBlock] | None = None,
    page_use: PageUse | None = None,
    calls: Iterable[CallBlock] = (),
    running: Iterable[RunningBlock] = (),
) -> Recording:
    """The recording of these images; their times and the identity's are of one line, from `start_ns` on."""
    scale = scale_of(processes, options)
    missed = options.cached and scale.chosen is None
    return Recording(
        exit_code=exit_code,
        start_ns=start_ns,
        blocks=blocks(keep, scale.levels if options.sizes else None, len(options.sizes)),
        threads=_threads(processes),
        losses=_losses(processes),
        counters=_counters(processes, scale),
        notes={**scale.facts(), **_warned(notes, scale.smaller)},
        identity=identity,
        transfers=transfers,
        page_use=page_use(missed) if page_use else None,
        calls=calls,
        running=running,
    )


def _warned(notes: Mapping[str, str], warning: str) -> Mapping[str, str]:
    """The notes, with one more of the warnings."""
    said = [text for text in (warning, notes.get("warnings", "")) if text]
    return {**notes, **({"warnings": "; ".join(said)} if said else {})}


def _threads(processes: Sequence[ProcessSpool]) -> list[SeenThread]:
    return [
        SeenThread(
            process.pid,
            int(row["tid"]),
            start_ns=process.moment(int(row["start_ns"])),
            end_ns=process.moment(int(row["end_ns"])),
        )
        for process in processes
        for row in np.sort(process.threads, order="birth")
    ]


def _losses(processes: Sequence[ProcessSpool]) -> list[tuple[int, int]]:
    return [
        (process.moment(int(row["end_ns"])), int(row["lost"]))
        for process in processes
        for row in process.threads
        if row["lost"]
    ]


def _counters(processes: Sequence[ProcessSpool], scale: Scale) -> list[tuple[int, int, int, str, float]]:
    return [
        (process.moment(int(row["end_ns"])), process.pid, int(row["tid"]), name, value)
        for process in processes
        for row in process.threads
        for name, value in scale.counts(row)
    ]
