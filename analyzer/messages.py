"""What the ranks of an MPI job send each other."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import MESSAGE_KINDS, MOST_RANKS, Trace

LINE_BYTES = 64  # of a message are taken for one transfer of a cache line
COLLECTIVE_KINDS = ("collective", "modelled")
_RANK = re.compile("r([0-9]{1,8})")

Numbers = NDArray[np.int64]
Amounts = NDArray[np.float64]


class RankMessages(msgspec.Struct, frozen=True):
    """Messages between ranks, a mean a run where there are several; what ranks send themselves is left out.

    ranks: of the job; recorded: those whose messages are known, ascending; rank, peer, bytes, count: equally
    long, bytes and messages from `rank` to `peer`, each pair once, in order of both; kinds: (bytes, messages)
    of each kind that occurs, in the order of MESSAGE_KINDS.
    """

    ranks: int
    recorded: Numbers
    rank: Numbers
    peer: Numbers
    bytes: Amounts
    count: Amounts
    kinds: dict[str, tuple[float, float]]

    @property
    def lines(self) -> Amounts:
        """The bytes as transfers of cache lines, which is how threads' communication is counted."""
        return self.bytes / LINE_BYTES

    def share(self, *kinds: str) -> float:
        """The share of all bytes that is of these kinds; 0 where there are none."""
        total = sum(found for found, _ in self.kinds.values())
        return sum(self.kinds.get(kind, (0.0, 0.0))[0] for kind in kinds) / total if total else 0.0


class MessageCounter:
    """The messages of a job, from one trace, one of each rank, or several runs, one at a time."""

    def __init__(self) -> None:
        self._recorded: list[Numbers] = []
        self._tables: list[dict[str, NDArray[Any]]] = []
        self._ranks = 0

    def add(self, trace: Trace) -> None:
        """Take those of a trace, where they are known; of a part of it they are not."""
        if trace.meta.get("messages") and trace.part is None:
            self._recorded.append(_recorded(trace))
            self._tables.append(trace.arrays(_ASKED))
            self._ranks = max(self._ranks, int(trace.meta.get("ranks", "0")))

    def result(self) -> RankMessages | None:
        """All that were added; None: no messages are known."""
        if not self._tables:
            return None
        columns = {name: np.concatenate([table[name] for table in self._tables]) for name in self._tables[0]}
        rank, peer, kind = columns["rank"].astype(np.int64), columns["peer"].astype(np.int64), columns["kind"]
        runs = np.bincount(np.concatenate(self._recorded))
        amounts, counts = columns["bytes"] / runs[rank], columns["count"] / runs[rank]
        highest = max(len(runs) - 1, int(peer.max(initial=0)))
        return RankMessages(
            min(max(highest + 1, self._ranks), MOST_RANKS),
            np.flatnonzero(runs),
            *_sums(*_directed(rank, peer, kind == "get"), amounts, counts),
            {
                name: (float(amounts[kind == name].sum()), float(counts[kind == name].sum()))
                for name in MESSAGE_KINDS
                if (kind == name).any()
            },
        )


def rank_messages(traces: Iterable[Trace]) -> RankMessages | None:
    """The messages of a job, from one trace, one of each rank, or several runs; None: they are not known."""
    counter = MessageCounter()
    for trace in traces:
        counter.add(trace)
    return counter.result()


_ASKED = (
    "SELECT rank, peer, kind::VARCHAR AS kind, sum(bytes)::DOUBLE AS bytes, sum(count)::DOUBLE AS count"
    " FROM messages WHERE rank <> peer GROUP BY rank, peer, messages.kind"
)


def _recorded(trace: Trace) -> Numbers:
    """The ranks that a trace is of, those included that sent nothing."""
    names = (_RANK.fullmatch(row.process) for row in trace.thread_rows)
    named = {int(name[1]) for name in names if name}
    sending = {int(rank) for (rank,) in trace.rows("SELECT DISTINCT rank FROM messages")}
    return np.array(sorted({rank for rank in named if rank < MOST_RANKS} | sending), np.int64)


def _directed(rank: Numbers, peer: Numbers, get: NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    """Where bytes come from, and where they go: what a rank gets, it does not send."""
    return np.where(get, peer, rank), np.where(get, rank, peer)


def _sums(
    rank: Numbers, peer: Numbers, amounts: Amounts, counts: Amounts
) -> tuple[Numbers, Numbers, Amounts, Amounts]:
    """Each pair once."""
    pairs, place = np.unique(rank * MOST_RANKS + peer, return_inverse=True)
    place = place.ravel()
    return (
        pairs // MOST_RANKS,
        pairs % MOST_RANKS,
        np.bincount(place, amounts, minlength=len(pairs)).astype(np.float64),
        np.bincount(place, counts, minlength=len(pairs)).astype(np.float64),
    )
