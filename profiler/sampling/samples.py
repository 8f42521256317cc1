"""What live samplers give: the memory accesses that running threads were seen to make."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..perfdata.accesses.data_source import is_store, levels
from ..perfdata.accesses.event_kinds import event_codes, of_amd
from ..perfdata.accesses.native import NEVER_AN_ACCESS
from ..perfdata.stream import StreamDecoder
from ..sample_block import USER_END
from ..trace.schema import EVENT_CODE, LEVEL_CODE

INSTRUCTIONS_PERIOD = 10_000_019
_MISSED = [LEVEL_CODE[name] for name in ("local_dram", "remote_dram", "remote_cache", "pmem", "cxl")]


@dataclass(frozen=True)
class LiveEvents:
    """What is sampled: the backend's name, perf's events and options, its period; machine_wide:
    the sampler cannot be bound to threads; unit_ns: of its latencies (samplers of processors count cycles);
    unloaded: its latencies are those of an idle machine, and tell no more than distances do.
    """

    backend: str
    events: tuple[str, ...]
    options: tuple[str, ...]
    period: int
    machine_wide: bool = False
    unit_ns: float = 1.0
    unloaded: bool = False


@dataclass(frozen=True)
class LiveSamples:
    """What was seen since the last call, equally long arrays in the order perf wrote them.

    time_ns: CLOCK_MONOTONIC; count: accesses that a sample stands for (its period); latency_ns: NaN
    unknown; missed: served by memory or another node's cache; instructions: (tid, instructions) pairs, where
    they are counted; lost: events that perf lost.
    """

    time_ns: NDArray[np.int64]
    pid: NDArray[np.int64]
    tid: NDArray[np.int64]
    cpu: NDArray[np.int64]
    addr: NDArray[np.uint64]
    event: NDArray[np.uint8]
    is_write: NDArray[np.bool_]
    latency_ns: NDArray[np.float64]
    missed: NDArray[np.bool_]
    count: NDArray[np.float64]
    instructions: tuple[tuple[int, float], ...]
    lost: int


class Sampler(Protocol):
    """Samples running threads' memory accesses until it is closed."""

    what: LiveEvents

    def take(self) -> LiveSamples:
        """The samples since the last call; raises MachineLacksError once it has ended."""

    def close(self) -> None:
        """Stop sampling; what was not taken yet is gone."""


def no_samples() -> LiveSamples:
    """Nothing was seen."""
    return live_samples(StreamDecoder().take().samples, (), 0)


def live_samples(
    samples: dict[str, NDArray[Any]], events: Sequence[str], lost: int, unit_ns: float = 1.0
) -> LiveSamples:
    """The accesses to user memory among decoded samples.

    events: names, by the samples' event number; unit_ns: of their weights.
    """
    code = event_codes(events)[samples["event"]]
    addr = samples["addr"]
    rows = np.flatnonzero((code < NEVER_AN_ACCESS) & (addr < USER_END) & (addr != 0))
    source = samples["data_src"][rows]
    weight = samples["weight"][rows].astype(np.float64)
    level = levels(source, of_amd(events)[samples["event"][rows]])
    period = samples["period"][rows].astype(np.float64)
    kept = code[rows]
    return LiveSamples(
        time_ns=samples["time"][rows],
        pid=samples["pid"][rows],
        tid=samples["tid"][rows],
        cpu=samples["cpu"][rows],
        addr=addr[rows],
        event=kept,
        is_write=(kept == EVENT_CODE["store"]) | is_store(source),
        latency_ns=np.where(weight > 0, weight * unit_ns, np.nan),
        missed=np.isin(level, _MISSED),
        count=np.where(period > 0, period, 1.0),
        instructions=_instructions(samples, events),
        lost=lost,
    )


def _instructions(samples: dict[str, NDArray[Any]], events: Sequence[str]) -> tuple[tuple[int, float], ...]:
    """Instructions by tid, where they are sampled."""
    ours = np.array([name.startswith("instructions") for name in events], dtype=np.bool_)
    if not ours.any() or not len(samples["event"]):
        return ()
    rows = np.flatnonzero(ours[samples["event"]])
    tids, counts = np.unique(samples["tid"][rows], return_counts=True)
    return tuple(zip(tids.tolist(), (counts * float(INSTRUCTIONS_PERIOD)).tolist(), strict=True))
