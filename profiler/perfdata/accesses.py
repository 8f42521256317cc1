"""The memory accesses of a recording read in blocks: once for the facts, and once more for the samples.

A recording of a hundred million samples never stands in memory as a whole; of a small one the samples stay
there from the first time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from numaplan.profiler.backends.base import SampleBlock
from numaplan.profiler.machine import Machine
from numaplan.profiler.machine.model import MAX_CPUS
from numaplan.profiler.perfdata.conversion import NEVER, BlockMaker, Samples, choose, event_codes, start_of
from numaplan.profiler.perfdata.decoded import Blocks, Decoded
from numaplan.profiler.perfdata.family import LARGEST_TID
from numaplan.profiler.perfdata.periods import PeriodCounter


@dataclass(frozen=True)
class Accesses:
    """What a recording holds of accesses. facts: all but its samples; pids: processes that have accesses.

    count: accesses; start: when the first was, in the file's clock; last_cpu: the highest cpu number seen;
    periods: by kind of event, as PeriodCounter finds them; kept: all samples, where they are few.
    """

    path: Path
    facts: Decoded
    count: int
    start: int
    pids: frozenset[int]
    last_cpu: int
    periods: Mapping[str, int]
    kept: "tuple[Samples, ...] | None" = field(default=None, repr=False)

    def blocks(self, machine: Machine, start: int, shift: int = 0) -> Iterator[SampleBlock]:
        """The accesses in file order, with `shift` ns added to their times, none before `start`."""
        maker = BlockMaker(self.facts, machine, start)
        kinds = event_codes(self.facts.events)
        for samples in Blocks(self.path) if self.kept is None else self.kept:
            rows, codes = choose(samples, kinds)
            if len(rows):
                yield maker.block(samples, rows, codes, shift)


def survey(path: Path, keep: int = 0) -> Accesses:
    """Read a recording once through, keeping up to `keep` samples. Raises as decode_perf does."""
    blocks = Blocks(path)
    first, last_cpu, count = NEVER, 0, 0
    counter = PeriodCounter()
    kept: list[Samples] | None = []
    seen = np.zeros(LARGEST_TID + 1, dtype=np.bool_)
    for samples in blocks:
        rows, codes = choose(samples, event_codes(blocks.events))
        count += len(rows)
        counter.add(samples, rows, codes)
        seen[samples["pid"][rows]] = True
        first = min(first, int(samples["time"][rows].min(initial=NEVER)))
        keep -= len(samples["time"])
        if keep < 0:
            kept = None
        elif kept is not None:
            kept.append(samples)
        cpus = samples["cpu"]
        last_cpu = max(last_cpu, int(cpus[cpus < MAX_CPUS].max(initial=0)))
    pids = frozenset(np.flatnonzero(seen).tolist())
    start = start_of(blocks.facts, first)
    return Accesses(
        path=path,
        facts=blocks.facts,
        count=count,
        start=start,
        pids=pids,
        last_cpu=last_cpu,
        periods=counter.periods(blocks.facts.header["attrs"]),
        kept=None if kept is None else tuple(kept),
    )
