"""What a trace says: the result of an analysis."""

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError, cells_html, facts_html

from .communication.side_by_side import SideBySide, one_part
from .memory.local_shares import LocalShares
from .timeline.phases import Phase
from .timeline.timeline import Timeline

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

FRAMES = ("comm", "threads", "phases", "timeline")
MOST_CELLS = 32  # of a drawing's side


class ThreadInfo(msgspec.Struct, frozen=True):
    """One thread: its identity, its samples, and those of them that missed the last cache."""

    thread: int
    process: str
    path: str
    name: str
    samples: int
    dram_samples: int


class Analysis(msgspec.Struct, frozen=True):
    """What a trace says. Threads without samples stay in, with zeros.

    pairs: (N, N) communication, symmetric, zero diagonal, in events, and pair_errors: its standard error, by
    those that were recorded together (comm, standard_error: the same as arrays); loads: (N,) access load
    vector (CMLB Eq. 3, scaled to accesses seen); load_source: `dram` or `all`, what loads and timeline count;
    misses: (N,) expected accesses to memory, in samples (misses.py); phases: by Algorithm 1; changes: slices
    at which the threads' rates of access change; partner_changes: slices at which threads begin to
    communicate with others than before; exchanges: (bins, pairs of threads in the order of
    numpy.triu_indices) events in bins of exchange_slices slices, none after a merge; confidence: 0..1, how
    far the matrix would come out the same from other samples and other ways of counting; notes: what a reader
    must know to trust it rightly; local: how much was local as the program ran, where that was counted;
    left_out: counted transfers that are not in `comm`: those in variables of threading runtimes and C
    libraries.
    """

    threads: list[ThreadInfo]
    pairs: SideBySide
    pair_errors: SideBySide
    loads: NDArray[np.float64]
    misses: NDArray[np.float64]
    load_source: str
    timeline: Timeline
    phases: list[Phase]
    changes: list[int]
    confidence: float
    events: int
    samples: int
    shared_samples: int
    period: int
    notes: list[str] = msgspec.field(default_factory=list)
    layers: dict[str, float] = msgspec.field(default_factory=dict)
    partner_changes: list[int] = msgspec.field(default_factory=list)
    local: LocalShares | None = None
    left_out: int = 0
    exchange_slices: int = 1
    exchanges: NDArray[np.int32] = msgspec.field(default_factory=lambda: np.zeros((0, 0), np.int32))

    @property
    def comm(self) -> NDArray[np.float64]:
        """(N, N) communication in events."""
        return self.pairs.whole()

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """(N, N) of the communication."""
        return self.pair_errors.whole()

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """Phases by change points: half-open ranges of slices in which neither rates nor partners change."""
        ends = sorted({*self.changes, *self.partner_changes, len(self.timeline.per_thread)} - {0})
        return list(pairwise([0, *ends]))

    @property
    def names(self) -> list[str]:
        """The threads' creation paths, after the process where there are several."""
        several = len({thread.process for thread in self.threads}) > 1
        return [f"{thread.process}:{thread.path}" if several else thread.path for thread in self.threads]

    def graph(self, comm: NDArray[np.float64] | None = None) -> "nx.Graph":
        """Who communicates with whom as a networkx graph: a vertex a thread, an edge a pair that does.

        Vertices: the thread's row in the matrix, with `process`, `path`, `name`, `load` and `samples`. Edges:
        `weight`, events, and `standard_error`. The graph: `events`, their sum, and `left_out`. comm: (N, N)
        another matrix of the same threads, such as that of a phase, whose edges have a weight only.
        """
        import networkx as nx

        graph = nx.Graph() if comm is not None else nx.Graph(events=self.events, left_out=self.left_out)
        for row, (thread, load) in enumerate(zip(self.threads, self.loads.tolist(), strict=True)):
            identity = {"process": thread.process, "path": thread.path, "name": thread.name}
            graph.add_node(row, **identity, load=load, samples=thread.samples)
        pairs = self.pairs if comm is None else one_part(comm)
        for number, (members, part) in enumerate(pairs.parts):
            error = self.pair_errors.parts[number].matrix if comm is None else None
            names = members.tolist()
            for one, other in np.argwhere(np.triu(part, 1)).tolist():
                about = {} if error is None else {"standard_error": float(error[one, other])}
                graph.add_edge(names[one], names[other], weight=float(part[one, other]), **about)
        return graph

    def frame(self, name: str) -> "pd.DataFrame":
        """A part of it as a DataFrame.

        `comm`: threads by threads; `threads`: identity, load, samples; `phases`: when, how busy, and each
        thread's load; `timeline`: accesses of each thread by time. Raises UsageError for another.
        """
        import pandas as pd

        names, line = self.names, self.timeline
        if name == "comm":
            return pd.DataFrame(self.comm, index=names, columns=names)
        if name == "threads":
            rows = [msgspec.structs.asdict(thread) for thread in self.threads]
            return pd.DataFrame(rows, index=names).assign(load=self.loads, misses=self.misses)
        if name == "phases":
            loads = pd.DataFrame([phase.loads for phase in self.phases], columns=names)
            starts, ends = ([getattr(phase, end) for phase in self.phases] for end in ("start", "end"))
            times = {
                word: [line.start_ns + place * line.slice_ns for place in places]
                for word, places in (("start_ns", starts), ("end_ns", ends))
            }
            return pd.DataFrame({**times, "weight": [phase.weight for phase in self.phases]}).join(loads)
        if name == "timeline":
            index = pd.Index(line.slice_starts(), name="start_ns")
            return pd.DataFrame(line.per_thread, index=index, columns=names)
        raise UsageError(f"an analysis has no frame {name!r}", f"choose from {', '.join(FRAMES)}")

    def _repr_html_(self) -> str:
        facts = {
            "threads": f"{len(self.threads):,}",
            "samples": f"{self.samples:,}",
            "communication": f"{self.events:,} events, confidence {self.confidence:.2f}",
            "phases": f"{len(self.phases):,}",
            "loads count": "misses of the last cache" if self.load_source == "dram" else "all accesses",
        }
        drawn = cells_html(self._drawing()) if self.pairs.total() else ""
        return facts_html("Analysis", facts, self.notes) + drawn

    def _drawing(self) -> list[list[float]]:
        """Who communicates with whom, of many threads in groups, as shares of the most."""
        cells = self.pairs.cells(MOST_CELLS)
        answer: list[list[float]] = np.sqrt(cells / cells.max()).tolist()
        return answer
