"""The memory accesses of a recording read in blocks: once for the facts, and once more for the samples.

A recording of a hundred million samples is never in memory as a whole; of a small one the samples stay
there from the first time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from numaplan.machine import Machine

from ...sample_block import SampleBlock
from ..decode import Decoded, decoded_of, opened, pieces
from .callers import CallTable
from .decoder import AccessDecoder
from .placing import Placer, start_of
from .times import TimeCounter, TimeSpan

KEPT = 1 << 22  # accesses of 55 bytes that may stay in memory rather than be decoded twice


@dataclass(frozen=True)
class Accesses:
    """What a recording holds of accesses. facts: all but its samples; pids: processes that have accesses.

    count: accesses; start: when the first was, in the file's clock; last_cpu: the highest cpu number of
    them; periods: by kind of event, as PeriodCounter finds them; shift: what is added to the times of its
    samples; calls: that they were made in; first_call: how many there are of other recordings, before them;
    kept: the accesses, where they are few; of_kernel: how many of kernel memory were left out; times: that
    accesses can have.
    """

    path: Path
    facts: Decoded
    count: int
    start: int
    pids: frozenset[int]
    last_cpu: int
    periods: Mapping[str, int]
    shift: int = 0
    calls: CallTable = field(default_factory=CallTable, repr=False)
    first_call: int = 0
    kept: "tuple[SampleBlock, ...] | None" = field(default=None, repr=False)
    of_kernel: int = 0
    times: TimeSpan = field(default_factory=TimeSpan)

    def blocks(self, machine: Machine, start: int) -> Iterator[SampleBlock]:
        """The accesses in file order, none before `start`."""
        placer = Placer(machine, start)
        for block in AccessBlocks(self.path) if self.kept is None else self.kept:
            rows = self.times.rows(block.time_ns)
            possible = block if rows is None else block.chosen(rows)
            yield placer.place(_counted_from(possible, self.first_call), self.shift)

    def moved(self, shift: int) -> "Accesses":
        """The same on a clock that is `shift` ns ahead."""
        return replace(
            self, facts=self.facts.moved(shift), start=self.start + shift, shift=self.shift + shift
        )


def _counted_from(block: SampleBlock, first: int) -> SampleBlock:
    """The block with its calls numbered from `first` on."""
    return (
        replace(block, call=np.where(block.call >= 0, block.call + np.int32(first), -1)) if first else block
    )


class AccessBlocks:
    """The accesses of a recording block by block, times as in the file; raises as decode_perf does.

    Once all were read, facts: the recording without samples; decoder: what the accesses say together.
    """

    facts: Decoded
    decoder: AccessDecoder

    def __init__(self, path: Path, name: str = "") -> None:
        self._path, self._name = path, name

    def __iter__(self) -> Iterator[SampleBlock]:
        source, reader = opened(self._path, AccessDecoder, self._name)
        assert isinstance(reader.samples, AccessDecoder)  # for the types
        self.decoder = reader.samples
        self.decoder.search_unrecorded(reader.records.threads())
        for _piece in pieces(reader, source, self._path):
            yield from self._ready()
        self.decoder.flush()
        yield from self._ready()
        reader.finish()
        facts = decoded_of(reader)
        self.facts = replace(facts, recorded_threads=facts.recorded_threads + self.decoder.unrecorded.spans())

    def _ready(self) -> Iterator[SampleBlock]:
        ready = self.decoder.ready
        while ready:
            yield ready.pop(0)


def survey(path: Path, keep: int = 0, name: str = "") -> Accesses:
    """Read a recording once through, keeping up to `keep` accesses. Raises as decode_perf does.

    name: of the file in messages, where it is not its path.
    """
    blocks = AccessBlocks(path, name)
    last_cpu, count = 0, 0
    kept: list[SampleBlock] | None = []
    counter = TimeCounter()
    for block in blocks:
        count += len(block)
        last_cpu = max(last_cpu, int(block.cpu.max(initial=0)))
        counter.add(block.time_ns)
        if count > keep:
            kept = None
        elif kept is not None:
            kept.append(block)
    decoder, times = blocks.decoder, counter.span()
    facts = _possible(blocks.facts, times)
    return Accesses(
        path=path,
        facts=facts,
        count=count - times.outside,
        start=start_of(facts, times.first),
        pids=decoder.chosen.pids,
        last_cpu=last_cpu,
        calls=decoder.callers.arrays(),
        periods=decoder.counter.periods(facts.header["attrs"]),
        kept=None if kept is None else tuple(kept),
        of_kernel=decoder.chosen.of_kernel,
        times=times,
    )


def _possible(facts: Decoded, times: TimeSpan) -> Decoded:
    """The facts without impossible times of records, with a warning of these and of accesses."""
    found, impossible = facts.within(times.holds)
    if not (impossible := impossible + times.outside):
        return facts
    text = f"{impossible} samples and records have impossible times: left out"
    return replace(found, warnings=(*facts.warnings, text))
