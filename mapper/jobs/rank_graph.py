"""What ranks exchange, as the placement on hosts asks for it: bytes between each two, by sparse entries."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import LINE_BYTES
from numaplan.common import UsageError
from numaplan.machine import Machine

from ..threads.sparse import SparseMatrix, sparse_matrix
from ..workload.one_job import Membership, check_one_job
from .part import Part, rank_of_process
from .part_tables import ONE_RUN

Ints = NDArray[np.int64]

LIGHT = 0.05  # of the accesses of a rank's busiest thread, up to which another needs no cpu of its own


class RankSummary(msgspec.Struct, frozen=True):
    """A rank as its placement asks for it: its threads, where it was recorded, and bytes by other rank.

    messages: whether these could be seen; shared: bytes of lines that it shares with others.
    """

    rank: int
    job: Membership
    threads: int
    host: str
    machine: Machine
    recording: str
    argv: tuple[str, ...]
    executable: str
    messages: bool
    sent: dict[int, int]
    shared: dict[int, float]


class RankGraph(msgspec.Struct, frozen=True):
    """ranks: their numbers, ascending; threads: of each; bytes: (R, R) symmetric, by place in `ranks`;
    messages: whether those of all were seen."""

    ranks: tuple[int, ...]
    threads: Ints
    bytes: SparseMatrix
    messages: bool


SUMMARISED = ("threads", "pairs", "messages")  # tables of a part that are asked for


def summarise(part: Part) -> RankSummary:
    """Of a part."""
    facts = part.facts
    sent: dict[int, int] = {}
    if part.messages is not None:
        for peer, size in zip(part.messages.peer.tolist(), part.messages.bytes.tolist(), strict=True):
            sent[peer] = sent.get(peer, 0) + size
    return RankSummary(
        rank=facts.rank,
        job=facts.membership,
        threads=_running(part),
        host=facts.host,
        machine=part.machine,
        recording=facts.recording,
        argv=facts.argv,
        executable=facts.executable,
        messages=facts.messages,
        sent=sent,
        shared=_shared(part),
    )


def _running(part: Part) -> int:
    """How many threads the rank has that need a cpu: MPI's own, which help it along, make few accesses."""
    return max(1, int((part.accesses > LIGHT * part.accesses.max(initial=0.0)).sum()))


def _shared(part: Part) -> dict[int, float]:
    """Bytes of lines that threads of other ranks take from this one's, or these from theirs."""
    own = part.facts.own
    found: dict[int, float] = {}
    for column in range(own, len(part.threads)):
        rank = rank_of_process(part.threads[column][0])
        size = float(part.matrices["lines"][:, column].sum()) * LINE_BYTES
        if rank is not None and size > 0:
            found[rank] = found.get(rank, 0.0) + size
    return found


def rank_graph(summaries: Sequence[RankSummary]) -> RankGraph:
    """Of all ranks of a job, ascending; raises UsageError where some are missing, or of another job."""
    from scipy import sparse

    check_one_job((one.job for one in summaries), ONE_RUN)
    ranks = tuple(one.rank for one in summaries)
    size = max(max(ranks) + 1, *(one.job.ranks for one in summaries))
    if size > len(ranks):
        missing = sorted(set(range(size)) - set(ranks)) if size < 1 << 20 else []
        shown = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")
        raise UsageError(
            f"parts of {len(ranks)} ranks of {size}; missing: {shown}", "reduce the traces of all ranks"
        )
    told = {frozenset((one.rank, peer)) for one in summaries for peer, sent in one.sent.items() if sent}
    entries: list[tuple[int, int, float]] = []
    for one in summaries:
        for peer, sent in one.sent.items():
            if peer != one.rank and peer < size and sent:
                entries += [(one.rank, peer, float(sent)), (peer, one.rank, float(sent))]
        # Both ranks tell of the lines that they share, each of its half; those of messages count once.
        for peer, shared in one.shared.items():
            if peer < size and frozenset((one.rank, peer)) not in told:
                entries += [(one.rank, peer, shared), (peer, one.rank, shared)]
    table = np.array(entries, np.float64).reshape(-1, 3)
    places = table[:, :2].astype(np.int64)
    matrix = sparse.coo_array((table[:, 2], (places[:, 0], places[:, 1])), shape=(size, size)).tocsr()
    return RankGraph(
        ranks=ranks,
        threads=np.array([one.threads for one in summaries], np.int64),
        bytes=sparse_matrix(matrix),
        messages=all(one.messages for one in summaries),
    )
