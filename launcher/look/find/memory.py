"""Memory that is away from its threads. Each function knows one cause; the first that holds is it."""

from numaplan.machine import format_list

from .finding import Finding
from .view import View, Work
from .words import again, by_node, by_plan, listed, named, on_node, percent, size, threads_where

FEW = 0.1  # of the sampled accesses, remote: wherever the rest of its memory is, it is not used
AWAY = 0.3  # of the memory on other nodes than the threads
APART = 0.45  # half the sum of differences between the shares of threads and memory on each node
ONE_NODE = 0.8  # of the memory, which is then said to be on one node
TRACES = 0.02  # of the memory: libraries' data and the like, not worth a word
ROOM = 1.05  # of what is moved must be free


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


def _finding(view: View, work: Work, name: str, what: str, cure: tuple[str, ...], *evidence: str) -> Finding:
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


def _others(work: Work, node: int) -> dict[int, int]:
    return {one: count for one, count in work.memory.items() if one != node and work.share(one) >= TRACES}


def move_here(view: View, work: Work, node: int) -> tuple[str, ...]:
    """Move its memory to the node of its threads, and keep these there."""
    away = format_list(_others(work, node))
    moves: tuple[str, ...] = (f"migratepages {work.process.pid} {away} {node}",)
    if view.confined(work.threads) != (node,):
        moves = (f"taskset -acp {format_list(view.cpus_of(node))} {work.process.pid}", *moves)
    return moves


def cpuset_without_memory(view: View, work: Work) -> Finding | None:
    """A cpuset allows a node's cpus, and not its memory."""
    thread = max(work.threads, key=lambda busy: busy.demand).thread
    having = {node.id for node in view.machine.nodes if node.memory_bytes} or set(view.machine.node_ids)
    wanted = set(view.nodes_of(thread.cpus)) & having
    lacking = wanted - set(thread.mems)
    run_there = sum(share for node, share in work.nodes.items() if node in lacking)
    if not thread.mems or not lacking or run_there < AWAY or work.local >= 1 - AWAY:
        return None
    from .cgroups import allow

    return _finding(
        view,
        work,
        "cpuset-without-memory",
        f"may use the cpus of {listed(lacking)}, but not their memory",
        (allow(work.process, "mems", wanted),),
        f"Mems_allowed is {format_list(thread.mems)}, Cpus_allowed {format_list(thread.cpus)}",
        f"by the cpuset of {work.process.cgroup or 'an unknown cgroup'}",
    )


def huge_pages_elsewhere(view: View, work: Work) -> Finding | None:
    """Huge pages came from another node: the pool of the threads' node is empty."""
    pages, node = work.by_kind("huge"), home(view, work)
    total, memory = sum(pages.values()), work.process.memory
    if node is None or memory is None or total < work.bytes / 2 or pages.get(node, 0) > (1 - AWAY) * total:
        return None
    page = memory.huge_page_bytes
    state = view.after.system.nodes.get(node)
    every, free = state.huge.get(page, (0, 0)) if state else (0, 0)
    away = total - pages.get(node, 0)
    if free * page >= away:
        return None
    pool = f"/sys/devices/system/node/node{node}/hugepages/hugepages-{page >> 10}kB/nr_hugepages"
    return _finding(
        view,
        work,
        "huge-pages-elsewhere",
        f"its huge pages are on {listed(_others(work, node))}: {listed([node])} has none left",
        (f"echo {every + -(-away // page)} > {pool}", again(work)),
        f"{listed([node])} has {every} huge pages of {size(page)}, {free} of them free",
    )


def interleave_by_accident(view: View, work: Work) -> Finding | None:
    """Memory is dealt to all nodes, but the threads run on one."""
    node = home(view, work)
    dealt: dict[int, int] = {}
    policies = work.by_policy("interleave", "weighted interleave")
    for nodes in policies.values():
        for one, count in nodes.items():
            dealt[one] = dealt.get(one, 0) + count
    if node is None or sum(dealt.values()) < work.bytes / 2 or work.share(node) > 1 - AWAY:
        return None
    return _finding(
        view,
        work,
        "interleave-by-accident",
        f"its memory is interleaved, but all its threads run on {listed([node])}",
        (on_node(work, node),),
        f"policy {', '.join(sorted(policies))} for {size(sum(dealt.values()))}",
    )


def policy_away(view: View, work: Work) -> Finding | None:
    """A memory policy names nodes on which the threads may not run."""
    may_run = set(view.confined(work.threads))
    for policy, nodes in work.by_policy("bind", "prefer").items():
        named_nodes = policy_nodes(policy)
        count = sum(nodes.values())
        if not named_nodes or named_nodes & may_run or count < work.bytes / 2:
            continue
        stack = work.process.memory and any(
            part.kind == "stack" and part.policy == policy for part in work.process.memory.parts
        )
        node = max(work.nodes, key=lambda one: work.nodes[one])
        there = sorted(cpu for one in named_nodes for cpu in view.cpus_of(one))
        cure = (on_node(work, node),)
        if not stack and len(there) >= len(work.threads):  # its own, which numactl would not change
            cure = (f"taskset -acp {format_list(there)} {work.process.pid}",)
        return _finding(
            view,
            work,
            "policy-away",
            f"its memory is bound to {listed(named_nodes)}, where its threads may not run",
            cure,
            f"policy {policy} for {size(count)}, {'of the whole process' if stack else 'set by the program'}",
        )
    return None


def policy_nodes(policy: str) -> set[int]:
    """The nodes that a policy as numa_maps writes it names."""
    from ..read.files import ids

    return set(ids(policy.rpartition(":")[2])) if ":" in policy else set()


def mbind_forbidden(view: View, work: Work) -> Finding | None:
    """A sandbox that refuses mbind: a library that binds memory is there, but nothing is bound."""
    memory = work.process.memory
    if not work.process.seccomp or memory is None or not memory.libraries or work.local > 1 - AWAY:
        return None
    if any(part.policy != "default" for part in memory.parts):
        return None
    node = home(view, work)
    cure: tuple[str, ...] = (on_node(work, node),) if node is not None else by_plan(work)
    if "docker" in work.process.cgroup or "libpod" in work.process.cgroup:
        cure = ("start the container with --cap-add SYS_NICE",)
    return _finding(
        view,
        work,
        "mbind-forbidden",
        "a sandbox seems to refuse mbind: nothing is bound, and memory is away from its threads",
        cure,
        f"Seccomp is 2, {', '.join(memory.libraries)} is loaded, every policy is default",
    )


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
    return _finding(
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
    return _finding(
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
    away = sum(_others(work, node).values())
    if view.free(node) < ROOM * away:
        return None
    return _finding(
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
    return _finding(
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
    return _finding(
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
    return _finding(
        view,
        work,
        "parts-away",
        f"each thread mostly uses memory of its own, which is on other nodes, {how}",
        by_plan(work),
        f"{percent(seen.own)} of its accesses are to memory that one thread or one node uses almost alone",
    )
