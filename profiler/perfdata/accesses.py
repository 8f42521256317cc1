"""The memory accesses of a recording read in blocks, twice: once for the facts, once for the samples.

A recording of a hundred million samples never stands in memory as a whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from numaplan.profiler.backends.base import SampleBlock
from numaplan.profiler.machine import Machine
from numaplan.profiler.machine.model import MAX_CPUS
from numaplan.profiler.perfdata.conversion import NEVER, BlockMaker, choose, event_codes, start_of
from numaplan.profiler.perfdata.decoded import Blocks, Decoded
from numaplan.profiler.perfdata.family import LARGEST_TID


@dataclass(frozen=True)
class Accesses:
    """What a recording holds of accesses. facts: all but its samples; pids: processes that have accesses.

    count: accesses; start: when the first was, in the file's clock; last_cpu: the highest cpu number seen.
    """

    path: Path
    facts: Decoded
    count: int
    start: int
    pids: frozenset[int]
    last_cpu: int

    def blocks(self, machine: Machine, start: int, shift: int = 0) -> Iterator[SampleBlock]:
        """The accesses in file order, with `shift` ns added to their times, none before `start`."""
        maker = BlockMaker(self.facts, machine, start)
        kinds = event_codes(self.facts.events)
        for samples in Blocks(self.path):
            rows, codes = choose(samples, kinds)
            if len(rows):
                yield maker.block(samples, rows, codes, shift)


def survey(path: Path) -> Accesses:
    """Read a recording once through. Raises as decode_perf does."""
    blocks = Blocks(path)
    first, last_cpu, count = NEVER, 0, 0
    seen = np.zeros(LARGEST_TID + 1, dtype=np.bool_)
    for samples in blocks:
        rows, _codes = choose(samples, event_codes(blocks.events))
        count += len(rows)
        seen[samples["pid"][rows]] = True
        first = min(first, int(samples["time"][rows].min(initial=NEVER)))
        cpus = samples["cpu"]
        last_cpu = max(last_cpu, int(cpus[cpus < MAX_CPUS].max(initial=0)))
    pids = frozenset(np.flatnonzero(seen).tolist())
    return Accesses(path, blocks.facts, count, start_of(blocks.facts, first), pids, last_cpu)
