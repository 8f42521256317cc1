"""What the ranks of an MPI job send each other."""

import re
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import MOST_RANKS, Trace

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


def rank_messages(traces: Sequence[Trace]) -> RankMessages | None:
    """The messages of a job, from one trace, one of each rank, or several runs; None: they are not known."""
    known = [trace for trace in traces if trace.meta.get("messages")]
    if not known:
        return None
    recorded = [_recorded(trace) for trace in known]
    runs = np.bincount(np.concatenate(recorded))
    tables = [trace.arrays(_ASKED) for trace in known]
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    rank, peer = columns["rank"].astype(np.int64), columns["peer"].astype(np.int64)
    share = 1 / runs[rank]
    amounts, counts = columns["bytes"] * share, columns["count"] * share
    highest = max(0, *(int(numbers.max(initial=0)) for numbers in (rank, peer, *recorded)))
    sizes = [int(trace.meta.get("ranks", "0")) for trace in known]
    kind = columns["kind"]
    return RankMessages(
        min(max(highest + 1, *sizes), MOST_RANKS),
        np.flatnonzero(runs),
        *_sums(*_directed(rank, peer, kind == "get"), amounts, counts),
        {
            str(name): (float(amounts[kind == name].sum()), float(counts[kind == name].sum()))
            for name in dict.fromkeys(kind.tolist())
        },
    )


_ASKED = (
    "SELECT rank, peer, kind::VARCHAR AS kind, sum(bytes)::DOUBLE AS bytes, sum(count)::DOUBLE AS count"
    " FROM messages WHERE rank <> peer GROUP BY rank, peer, messages.kind ORDER BY messages.kind, rank, peer"
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
