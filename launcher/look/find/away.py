"""Memory that is away from its threads: how much, what it costs, and the node where it should be."""

from .finding import Finding
from .view import View, Work
from .words import by_node, named, percent, threads_where

FEW = 0.1  # of the sampled accesses, remote: wherever the rest of its memory is, it is not used
AWAY = 0.3  # of the memory on other nodes than the threads
TRACES = 0.02  # of the memory: libraries' data and the like, not worth a word


def remote(view: View, work: Work) -> tuple[str, bool]:
    """What a process's remote memory costs, and whether that is measured: by samples, or NUMA hint faults."""
    if work.sampled:
        away, count = percent(work.sampled.remote), work.sampled.accesses
        return f"{away} of {count} sampled accesses are remote", True
    there = here = 0
    for busy in work.threads:
        for node, faults in busy.thread.faults.items():
            here, there = (here + faults, there) if node == busy.node else (here, there + faults)
    if there + here >= 32:  # fewer tell nothing
        share = percent(there / (there + here))
        return (
            f"{share} of the pages that its threads touched last are on other nodes (NUMA hint faults)",
            True,
        )
    rows, ids = view.machine.distance_rows, view.machine.node_ids
    far = max(max(row) / 10 for row in rows) if rows and len(ids) > 1 else 1
    may = f"up to {percent(1 - work.local)} of its memory accesses may be remote"
    return f"{may}, each taking about {far:.1f} times as long (by the machine's distances)", False


def away_finding(
    view: View, work: Work, name: str, what: str, cure: tuple[str, ...], *evidence: str
) -> Finding:
    cost, measured = remote(view, work)
    seen = (threads_where(work.threads, view), f"memory on {by_node(work.memory)}", *evidence)
    away = work.sampled.remote if work.sampled else 1 - work.local
    weight = away * sum(thread.ran for thread in work.threads)
    return Finding(
        name=name,
        what=f"{named(work)}: {what}",
        evidence=seen,
        cost=cost,
        measured=measured,
        cure=cure,
        pids=(work.process.pid,),
        weight=weight,
    )


def home(view: View, work: Work) -> int | None:
    """The one node where all its busy threads run and would fit; None where there is no such node."""
    nodes = list(work.nodes)
    if len(nodes) != 1 or nodes[0] < 0 or len(work.threads) > len(view.cpus_of(nodes[0])):
        return None
    return nodes[0]


def elsewhere(work: Work, node: int) -> dict[int, int]:
    """Its memory on other nodes, bytes by node, but for traces."""
    return {one: count for one, count in work.memory.items() if one != node and work.share(one) >= TRACES}
