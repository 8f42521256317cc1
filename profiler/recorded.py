"""What every recording returns: blocks of samples, the threads that were seen, what was lost."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .identity.records import Identity


@dataclass(frozen=True)
class SampleBlock:
    """Equally long arrays, one entry a sample; -1 (0 for addresses) where the backend does not know.

    time_ns: CLOCK_MONOTONIC, int64; event, level: codes of trace.schema EVENTS and LEVELS; latency: cycles.
    Blocks come in any order of time.
    """

    time_ns: NDArray[np.int64]
    pid: NDArray[np.int32]
    tid: NDArray[np.int32]
    cpu: NDArray[np.int16]
    node: NDArray[np.int16]
    addr: NDArray[np.uint64]
    phys_addr: NDArray[np.uint64]
    ip: NDArray[np.uint64]
    event: NDArray[np.uint8]
    is_write: NDArray[np.bool_]
    level: NDArray[np.uint8]
    latency: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.time_ns)

    def chosen(self, which: NDArray[np.bool_]) -> "SampleBlock":
        """The samples for which the mask is true."""
        return SampleBlock(**{name: column[which] for name, column in vars(self).items()})


@dataclass(frozen=True)
class SeenThread:
    """A thread as the backend saw it (where the preload library could not enter); times CLOCK_MONOTONIC."""

    pid: int
    tid: int
    name: str = ""
    parent_tid: int = -1
    start_ns: int = -1
    end_ns: int = -1


@dataclass(frozen=True)
class Recording:
    """What a backend brought back. `exit_code` is the program's own (128+signal when it died of one).

    start_ns: CLOCK_MONOTONIC when recording began; losses: (time_ns, events lost); counters: (time_ns, pid,
    tid, event, value); notes: further facts for the trace's meta table, by name; identity: where the preload
    library could not be (processes that ran already), what the backend knows instead.
    """

    exit_code: int
    start_ns: int
    blocks: Iterable[SampleBlock]
    threads: Sequence[SeenThread] = ()
    losses: Sequence[tuple[int, int]] = ()
    counters: Sequence[tuple[int, int, int, str, float]] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    identity: Identity | None = None
