"""Memory that is away by where it was touched first or had room; each knows one cause."""

from numaplan.machine import format_list

from .away import AWAY, away_finding, elsewhere, home
from .finding import Finding
from .policy import policy_nodes
from .view import View, Work
from .words import again, by_plan, listed, on_node, percent, size

APART = 0.45  # half the sum of differences between the shares of threads and memory on each node
ONE_NODE = 0.8  # of the memory, which is then said to be on one node
ROOM = 1.05  # of what is moved must be free


def move_here(view: View, work: Work, node: int) -> tuple[str, ...]:
    """Move its memory to the node of its threads, and keep these there."""
    away = format_list(elsewhere(work, node))
    moves: tuple[str, ...] = (f"migratepages {work.process.pid} {away} {node}",)
    if view.confined(work.threads) != (node,):
        moves = (f"taskset -acp {format_list(view.cpus_of(node))} {work.process.pid}", *moves)
    return moves


def node_full(view: View, work: Work) -> Finding | None:
    """The node that the memory was meant for is full, and it went elsewhere."""
    node = home(view, work)
    wanted = {node} if node is not None and view.confined(work.threads) == (node,) else set[int]()
    policies = work.by_policy("bind", "prefer")
    for policy in policies:
        wanted |= policy_nodes(policy)
    away = sum(count for one, count in work.memory.items() if one not in wanted)
    room = sum(view.free(one) for one in wanted)
    if not wanted or away < AWAY * work.bytes or room >= ROOM * away:
        return None
    empty = [one.id for one in view.machine.cpu_nodes if view.free(one.id) >= ROOM * (work.bytes)]
    fitting = [one for one in empty if len(view.cpus_of(one)) >= len(work.threads) and one not in wanted]
    best = max(fitting, key=lambda one: (work.share(one), view.free(one)), default=None)
    if best is None and not policies:  # it went where there was room, and there is none that is better
        return None
    everywhere = (again(work, "numactl --interleave=all"),)
    return away_finding(
        view,
        work,
        "node-full",
        f"{size(away)} of its memory had no room on {listed(wanted)}",
        everywhere if best is None else (on_node(work, best),),
        f"{listed(wanted)} has {size(room)} free"
        + (f", {listed([best])} has {size(view.free(best))}" if best is not None else ""),
    )


def slow_memory(view: View, work: Work) -> Finding | None:
    """Memory on a node without cpus (CXL, persistent memory), while the threads' node has room."""
    slow = {node.id for node in view.machine.nodes if not node.cpus}
    there = sum(count for node, count in work.memory.items() if node in slow)
    node = max(work.nodes, key=lambda one: work.nodes[one])
    if there < AWAY * work.bytes or node < 0 or view.free(node) < ROOM * there:
        return None
    used = format_list(one for one in slow if work.memory.get(one))
    return away_finding(
        view,
        work,
        "slow-memory",
        f"{size(there)} of its memory is on {listed(slow)}, which has no cpus, while there is room nearer",
        (f"migratepages {work.process.pid} {used} {node}",),
        f"{listed([node])} has {size(view.free(node))} free",
    )


def memory_away(view: View, work: Work) -> Finding | None:
    """All threads run on one node, and the memory is elsewhere: it can be moved to them."""
    node = home(view, work)
    if node is None or work.share(node) > 1 - AWAY:
        return None
    away = sum(elsewhere(work, node).values())
    if view.free(node) < ROOM * away:
        return None
    return away_finding(
        view,
        work,
        "memory-away",
        f"its threads run on {listed([node])}, {percent(1 - work.share(node))} of its memory is elsewhere",
        move_here(view, work, node),
        f"{listed([node])} has {size(view.free(node))} free",
    )


def threads_away(view: View, work: Work) -> Finding | None:
    """The memory is on one node that has cpus for all busy threads, and they run elsewhere."""
    node = max(work.memory, key=lambda one: work.memory[one])
    if work.share(node) < ONE_NODE or work.nodes.get(node, 0.0) > 1 - AWAY:
        return None
    here = view.cpus_of(node)
    away = [busy for busy in work.threads if busy.node != node]
    idle = [cpu for cpu in here if cpu in view.idle_cpus]
    if len(idle) < len(away):
        return None
    cpus = format_list(here)
    whole = all(set(busy.thread.cpus) - set(here) for busy in work.threads)
    cure = [f"taskset -cp {cpus} {busy.thread.tid}" for busy in away]
    return away_finding(
        view,
        work,
        "threads-away",
        f"its memory is on {listed([node])}, {len(away)} of its busy threads run elsewhere",
        (f"taskset -acp {cpus} {work.process.pid}",) if whole else tuple(cure),
        f"{listed([node])} has idle cpus: {format_list(idle)}",
    )


def memory_on_one_node(view: View, work: Work) -> Finding | None:
    """Threads run on several nodes, the memory is on one or a few: one thread touched all of it first."""
    nodes = set(work.nodes) | set(work.memory)
    apart = sum(abs(work.nodes.get(node, 0.0) - work.share(node)) for node in nodes) / 2
    if len(work.nodes) < 2 or apart < APART:
        return None
    most = [node for node in work.memory if work.share(node) >= 0.1]
    cure = by_plan(work)
    evidence = []
    if view.after.system.balancing == 0:
        cure = (*cure, "echo 1 > /proc/sys/kernel/numa_balancing")
        evidence.append("NUMA balancing, which would move pages to their threads, is off")
    return away_finding(
        view,
        work,
        "memory-on-one-node",
        f"its threads run on {listed(work.nodes)}, {percent(sum(map(work.share, most)))} of its memory is on"
        f" {listed(most)}: one thread probably initialised it",
        cure,
        *evidence,
    )


def parts_away(view: View, work: Work) -> Finding | None:
    """Memory is on the threads' nodes, but each thread's own part is on another one: only samples tell."""
    seen = work.sampled
    if seen is None or seen.remote < AWAY or seen.own < ONE_NODE / 2:
        return None
    policies = work.by_policy("interleave", "weighted interleave")
    how = f"under {', '.join(sorted(policies))}" if policies else "touched first by others"
    return away_finding(
        view,
        work,
        "parts-away",
        f"each thread mostly uses memory of its own, which is on other nodes, {how}",
        by_plan(work),
        f"{percent(seen.own)} of its accesses are to memory that one thread or one node uses almost alone",
    )
