"""Which input a recording stands for: what its last-level caches miss when they shrink as the input did.

The plugin tells of each access how many of several last-level caches would miss it (native/emulate/reach.c).
So the one that stands for a larger input is chosen when the program has ended and what it touched is known.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log2

import numpy as np
from numpy.typing import NDArray

from numaplan.machine import size_word

from ...trace.schema import LEVEL_CODE
from .options import EmulateOptions
from .spool import COUNTERS, ProcessSpool

_DRAM = np.isin(np.arange(len(LEVEL_CODE)), [LEVEL_CODE["local_dram"], LEVEL_CODE["remote_dram"]])
_MISSES = ("llc_misses_local", "llc_misses_remote")  # by what `past` and `remote` count


def footprint_of(processes: Sequence[ProcessSpool]) -> int:
    """Bytes of the pages that living processes had touched and not unmapped, each at its most."""
    changes = []
    for process in processes:
        first, end = process.first_ns, max(process.last_ns, process.first_ns + 1)
        changes.append((first + process.shift_ns, process.footprint))
        changes.append((end + process.shift_ns, -process.footprint))
    return max(accumulate(change for _, change in sorted(changes)), default=0)


@dataclass(frozen=True)
class Scale:
    """What the levels of a recording are those of.

    cached: whether there is a model of caches at all; footprint: of the program as it was recorded;
    stated: of the input it stands for, 0: itself; sizes: of the last-level caches that were told apart,
    ascending, none where they were not; chosen: which of them decides what reaches memory, None: the model;
    larger: of caches larger than the machine's.
    """

    cached: bool
    footprint: int
    stated: int
    sizes: tuple[int, ...]
    chosen: int | None
    larger: tuple[int, ...] = ()

    def facts(self) -> dict[str, str]:
        """What the trace's meta says of it."""
        facts = {"footprint": str(self.footprint)} if self.footprint else {}
        if self.sizes:
            facts["llc_sizes"] = ":".join(map(str, self.sizes))
        if self.larger:
            facts["llc_larger"] = ":".join(map(str, self.larger))
        if self.chosen is not None:
            facts |= {"for_footprint": str(self.stated), "for_llc": str(self.sizes[self.chosen])}
        return facts

    @property
    def smaller(self) -> str:
        """A warning where the input that was stated is smaller than the recorded one; else empty."""
        if not 0 < self.stated < self.footprint:
            return ""
        used = f"{self.footprint / (1 << 20):,.1f}M"
        return (
            f"--for-footprint {size_word(self.stated)} is less than the {used} that the program used: caches"
            " are as they were, levels those of the recorded input (was it to be in M or G?)"
        )

    def levels(
        self, level: NDArray[np.uint8], reach: NDArray[np.int8], remote: NDArray[np.bool_]
    ) -> NDArray[np.uint8]:
        """Levels of samples, by the model's, how many sizes miss, and whether the page is another node's."""
        if self.chosen is None:
            return level
        memory = np.where(remote, LEVEL_CODE["remote_dram"], LEVEL_CODE["local_dram"])
        held = np.where(_DRAM[level], LEVEL_CODE["l3"], level)
        return np.where(reach > self.chosen, memory, held).astype(np.uint8)

    def counts(self, thread: np.void) -> Iterator[tuple[str, float]]:
        """A thread's counters by name."""
        sizes = (*self.sizes, *self.larger)
        past = thread["past"][:, : len(sizes)].astype(np.float64)
        missed = past[:, ::-1].cumsum(axis=1)[:, ::-1]  # (2, sizes): by each size, not by exactly so many
        for name in COUNTERS if self.cached else COUNTERS[:2]:
            scaled = self.chosen is not None and name in _MISSES
            yield name, float(missed[_MISSES.index(name), self.chosen] if scaled else thread[name])
        for size, value in zip(sizes, missed.sum(axis=0).tolist(), strict=True):
            yield f"llc_misses_at_{size_word(size)}", value
        if thread["sleeps"] >= 0:
            yield "sleeps", float(thread["sleeps"])
        if thread["real_time"] > 0:
            yield "real_time", 1.0


def scale_of(processes: Sequence[ProcessSpool], options: EmulateOptions) -> Scale:
    """The cache that stands for the input asked for: of those that were modelled, the nearest in size."""
    footprint, chosen = footprint_of(processes), None
    if options.footprint and options.sizes and footprint:
        wanted = options.sizes[-1] * min(1.0, footprint / options.footprint)
        distance = [abs(log2(size / wanted)) for size in options.sizes]
        chosen = distance.index(min(distance))
    return Scale(options.cached, footprint, options.footprint, options.sizes, chosen, options.larger)
