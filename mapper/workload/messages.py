"""Messages between ranks that were recorded apart, as cache lines that move between their threads."""

import numpy as np
from msgspec.structs import replace

from numaplan.analyzer import RECORDED_APART, RankMessages

from ..threads.problem import Floats
from .workload import Workload

MAIN = "0"


def with_messages(workload: Workload, messages: RankMessages | None) -> Workload:
    """The workload of ranks recorded apart with what they send each other; the same where that is not known.

    Between the ranks' first threads: a message's bytes fill lines that the sender writes and the receiver
    takes.
    """
    mains = {thread: number for number, thread in enumerate(workload.threads)}
    if messages is None or not workload.apart:
        return workload
    processes = {process.partition(".")[0] for process, _ in workload.threads}
    known = {f"r{rank}" for rank in messages.recorded.tolist()}
    if processes - known or any((process, MAIN) not in mains for process in processes):
        return workload
    lines = np.zeros((len(mains), len(mains)))
    for rank, peer, count in zip(
        messages.rank.tolist(), messages.peer.tolist(), messages.lines.tolist(), strict=True
    ):
        one, other = mains.get((f"r{rank}", MAIN)), mains.get((f"r{peer}", MAIN))
        if one is not None and other is not None:
            lines[one, other] += count / 2
            lines[other, one] += count / 2
    comm, use = np.asarray(workload.comm), workload.use
    return replace(
        workload,
        comm=comm + lines * events_of_a_line(comm, use.lines if use else None),
        use=replace(use, lines=use.lines + lines) if use else None,
        notes=tuple(note for note in workload.notes if note != RECORDED_APART),
        apart=False,
    )


def events_of_a_line(comm: Floats, lines: Floats | None) -> float:
    """Communication is counted in events, of which a line that is moved is worth so many."""
    moved = 0.0 if lines is None else float(lines.sum())
    return float(comm.sum()) / moved if moved > 0 else 1.0
