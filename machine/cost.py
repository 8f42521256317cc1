"""What a placement costs: how long a program's threads wait because of where they and their memory are.

Four things cost time, and one does not: what stays in a cpu's own caches costs the same anywhere.

- An access that misses the last cache waits for memory: the latency from its cpu's node to the page's node,
  and the longer the busier that node's controller and the link to it are.
- A line that another cpu's cache has to give up waits for the way between the two.
- A thread whose cpu another thread has at the same time waits for its turn.
- A page that the kernel moves to another node is read from one memory and written to the other.

With a machine of K nodes and rows r (threads, or cpus) on cpu c(r) of node n(r), M[r, j] memory accesses to
node j, L[r, s] lines that r took from s, A[r] accesses in all:

    memory = sum M[r, j] latency[n(r), j] / OVERLAP
    lines  = sum L[r, s] transfer[c(r), c(s)]
    own[r] = A[r] ACCESS_NS + r's part of memory and lines
    path   = the most that any cpu has of own
    busy   = 64 bytes x accesses / bandwidth, of each node's memory and of each link between two nodes
    rho    = busy / max(path, greatest busy / FULL)
    queue  = sum over memories and links of accesses x service x rho / (2 (1 - rho)) / OVERLAP
             + users x (busy / FULL - path) where that is more than nothing
    cpu    = sum own[r] shared[r]
    moves  = pages moved x 64 lines x (latency of a node's own memory + of another's) / OVERLAP
    cost   = memory + lines + queue + cpu + moves

rho / (2 (1 - rho)) is the mean wait, in service times, of a queue with one server of constant speed (M/D/1,
Pollaczek-Khinchine). No program can be faster than the memory or link it uses most is at its full speed: what
the path lacks of that, all its users wait, whose number is (sum x)^2 / sum x^2 of their accesses x.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .cache_model import LINE, domains_of
from .model import LOCAL_DISTANCE, Machine

# Of a machine that does not tell, as measured on four Xeon Gold 6248 ([IMAR], Table 3): 84 ns, 143 at
# distance 21, 76 GB/s within a node and 17 between two.
LOCAL_NS = 84.0
MORE_NS = 59.0 / 11.0  # for each unit of distance beyond a node's own
LOCAL_MB_S = 76_000.0
REMOTE_MB_S = 17_100.0
# Of lines between caches, in local memory latencies: out of an L3 that both share, and of another one.
SHARED_L3, OTHER_L3 = 0.5, 1.0
ACCESS_NS = 0.5  # of an access that its own cache answers, and what the cpu does between it and the next
OVERLAP = 4.0  # misses that a cpu waits for at a time, of the ten or so that it can have under way
PAGE_LINES = 4096 // LINE
FULL = 0.95  # of its bandwidth, what a memory or link can be used

Floats = NDArray[np.float64]


class Cost(msgspec.Struct, frozen=True):
    """Waiting in ns, summed over threads: for memory, in its queues, for lines of others, for cpus, for pages
    that are moved."""

    memory_ns: float
    queue_ns: float
    lines_ns: float
    cpu_ns: float
    moves_ns: float = 0.0

    @property
    def total_ns(self) -> float:
        """The cost: less is better."""
        return sum(self.parts().values())

    def parts(self) -> dict[str, float]:
        """The same by what is waited for."""
        return msgspec.structs.asdict(self)


def latencies(machine: Machine) -> Floats:
    """(K, K) ns that cpus of the row's node wait for memory of the column's, unloaded."""
    local = np.diag(machine.distance_matrix)
    # Users and some firmware count from another number than 10; of zeros nobody knows from which.
    unit = min(local[local > 0].tolist(), default=LOCAL_DISTANCE) / LOCAL_DISTANCE
    usual = LOCAL_NS + MORE_NS * np.maximum(machine.distance_matrix / unit - LOCAL_DISTANCE, 0.0)
    if not machine.latency_ns:
        return usual
    known = np.array(machine.latency_ns, np.float64)
    return np.where(known > 0, known, usual)


def bandwidths(machine: Machine) -> Floats:
    """(K, K) MB/s from the column's memory to the row's cpus; a node's own on the diagonal."""
    usual = np.where(np.eye(len(machine.nodes), dtype=bool), LOCAL_MB_S, REMOTE_MB_S)
    if not machine.bandwidth_mb_s:
        return usual
    known = np.array(machine.bandwidth_mb_s, np.float64)
    best = known.max(axis=0)
    for place, node in enumerate(machine.nodes):
        if not node.cpus and best[place] > 0:  # it has no cpus to measure its own from
            usual[place, place] = best[place]
    return np.where(known > 0, known, usual)


def transfers(machine: Machine, cpus: ArrayLike) -> Floats:
    """(R, R) ns that a line takes from the cache of the column's cpu to the row's; 0 on one cpu."""
    rows = np.asarray(cpus)
    node = _node_rows(machine, rows)
    local = np.diag(latencies(machine))[node]
    l3 = np.array(domains_of(machine, [(cpu, machine.node_of_cpu[cpu]) for cpu in rows.tolist()]), np.int64)
    same_node = node[:, None] == node
    within = np.where(l3[:, None] == l3, SHARED_L3, OTHER_L3) * local[:, None]
    answer = np.where(same_node, within, latencies(machine)[np.ix_(node, node)])
    return np.where(rows[:, None] == rows, 0.0, answer)


def mean_transfers(machine: Machine, groups: Sequence[Sequence[int]]) -> Floats:
    """(G, G) ns that a line takes between cpus of two groups, in the mean; 0 within a group of one cpu."""
    cpus = np.array([cpu for group in groups for cpu in group])
    of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    member = np.eye(len(groups))[of]  # (cpus, G)
    apart = cpus[:, None] != cpus[None, :]
    pairs = member.T @ apart.astype(np.float64) @ member
    sums = member.T @ transfers(machine, cpus) @ member
    answer: Floats = np.divide(sums, pairs, out=np.zeros_like(sums), where=pairs > 0)
    return answer


def _node_rows(machine: Machine, cpus: NDArray[Any]) -> NDArray[np.int64]:
    row = {node: place for place, node in enumerate(machine.node_ids)}
    return np.array([row[machine.node_of_cpu[cpu]] for cpu in cpus.tolist()], np.int64)


def placement_cost(
    machine: Machine,
    cpus: ArrayLike,
    memory: ArrayLike,
    *,
    lines: ArrayLike | None = None,
    ways: ArrayLike | None = None,
    accesses: ArrayLike | None = None,
    shared: ArrayLike | None = None,
    pages_moved: float = 0.0,
) -> Cost:
    """The cost of a run, or of a phase of it: see above.

    cpus: (R,) ids; memory: (R, K) accesses that missed the last cache, by the page's node in the machine's
    order; lines: (R, R) taken by the row from the column; ways: (R, R) ns that each of them takes, by default
    between these cpus; accesses: (R,) of any kind; shared: (R,) how long a row waits for its cpu, in its own
    time; pages_moved: by the kernel, from node to node.
    """
    rows, missed = np.asarray(cpus), np.asarray(memory, np.float64)
    node, latency = _node_rows(machine, rows), latencies(machine)
    stalls = memory_waits(missed, node, latency)
    moved = np.zeros(len(rows))
    if lines is not None:
        way = transfers(machine, rows) if ways is None else np.asarray(ways, np.float64)
        moved = (np.asarray(lines, np.float64) * way).sum(axis=1)
    own = stalls + moved
    if accesses is not None:
        own = own + np.asarray(accesses, np.float64) * ACCESS_NS
    path = max((float(own[rows == cpu].sum()) for cpu in set(rows.tolist())), default=0.0)
    return Cost(
        memory_ns=float(stalls.sum()),
        queue_ns=_queues(missed, node, bandwidths(machine), path),
        lines_ns=float(moved.sum()),
        cpu_ns=0.0 if shared is None else float((own * np.asarray(shared, np.float64)).sum()),
        moves_ns=pages_moved * _page_move(latency),
    )


def memory_waits(missed: Floats, node: NDArray[np.int64], latency: Floats) -> Floats:
    """(R,) ns that each row waits for memory, without queues.

    missed: (R, K) accesses that missed the last cache, by the page's node; node: (R,) rows of the cpus'
    nodes; latency: (K, K) as `latencies` has it.
    """
    answer: Floats = (missed * latency[node]).sum(axis=1) / OVERLAP
    return answer


def _page_move(latency: Floats) -> float:
    """ns that it takes to copy a page to another node, in the mean."""
    apart = ~np.eye(len(latency), dtype=bool)
    if not apart.any():
        return 0.0
    return PAGE_LINES * float(np.diag(latency).mean() + latency[apart].mean()) / OVERLAP


def queue_waits(missed: Floats, node: NDArray[np.int64], bandwidth: Floats, path: float) -> Floats:
    """(K, K) ns that an access waits in the mean in the queue of a memory (on the diagonal) or of a link.

    missed, node: as for `memory_waits`; bandwidth: (K, K) as `bandwidths` has it; path: ns in which all of
    this happens, if no memory and no link takes longer.
    """
    used, taken, waits, lacks = _at_each(missed, node, bandwidth, path)
    each = np.zeros_like(bandwidth)
    each[used] = (waits + lacks) / taken
    return each


def _queues(missed: Floats, node: NDArray[np.int64], bandwidth: Floats, path: float) -> float:
    """ns that all accesses wait in queues."""
    _, _, waits, lacks = _at_each(missed, node, bandwidth, path)
    return float(waits.sum() + lacks.sum())


def _at_each(
    missed: Floats, node: NDArray[np.int64], bandwidth: Floats, path: float
) -> tuple[NDArray[np.bool_], Floats, Floats, Floats]:
    """Which memories (on the diagonal) and links between two nodes are used, (U,) accesses to each of these,
    and ns that these wait there: in its queue, and for what it lacks.
    """
    service, own = LINE * 1e3 / bandwidth, np.equal.outer(np.arange(len(bandwidth)), node).astype(np.float64)
    # Accesses over each link (i, j), and their users' squares; on the diagonal those to a whole memory.
    uses, squares = own @ missed, own @ missed**2
    np.fill_diagonal(uses, missed.sum(axis=0))
    np.fill_diagonal(squares, (missed**2).sum(axis=0))
    used = uses > 0
    busy, taken, square = (service * uses)[used], uses[used], squares[used]
    elapsed = max(path, float(busy.max(initial=0.0)) / FULL)
    if elapsed <= 0:
        return used, taken, np.zeros_like(taken), np.zeros_like(taken)
    load = busy / elapsed
    waits = busy * load / (2 * (1 - load)) / OVERLAP
    users = np.divide(taken**2, square, out=np.ones_like(taken), where=square > 0)
    return used, taken, waits, np.maximum(busy / FULL - path, 0.0) * users
