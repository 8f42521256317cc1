"""Memory that is away because a cpuset, a policy or a sandbox has it so; each knows one cause."""

from numaplan.machine import format_list

from .away import AWAY, away_finding, elsewhere, home
from .finding import Finding
from .view import View, Work
from .words import again, by_plan, listed, on_node, size


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

    return away_finding(
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
    return away_finding(
        view,
        work,
        "huge-pages-elsewhere",
        f"its huge pages are on {listed(elsewhere(work, node))}: {listed([node])} has none left",
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
    return away_finding(
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
        return away_finding(
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
    return away_finding(
        view,
        work,
        "mbind-forbidden",
        "a sandbox seems to refuse mbind: nothing is bound, and memory is away from its threads",
        cure,
        f"Seccomp is 2, {', '.join(memory.libraries)} is loaded, every policy is default",
    )
