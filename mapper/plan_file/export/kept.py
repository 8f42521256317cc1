"""What an export keeps of the plan, in words and as a share of local accesses, and what it loses."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from ..plan import Plan
from ..touched import STAYS, Touched, Whereabouts, local_share
from .placement import all_cpus, every_cpu, homes, homes_of, memory_nodes, nodes_of, processes

FIRST_TOUCH = "memory where it is touched first"


def spread_over(plan: Plan) -> tuple[int, ...]:
    """Nodes to interleave memory over where nothing finer can be said; none: first touch is better.

    By the planner's estimate of the program without a plan, left alone or interleaved (`predicted.costs`);
    where that was not made, first touch is taken. That estimate is of all nodes: where the plan has fewer,
    first touch is also taken if more is local by it.
    """
    costs, nodes = plan.predicted.costs, homes_of(plan, all_cpus(plan))
    if len(nodes) < 2 or costs.get("alone, interleaved", 0.0) >= costs.get("alone", 0.0):
        return ()
    every, where, home = homes_of(plan, every_cpu(plan)), _in_one_set(plan), homes(plan)
    touched, spread = (local_share(plan.predicted.touched, where, over, home) for over in ((), nodes))
    return nodes if nodes == every or touched <= spread else ()


def threads_bound(plan: Plan, memory: Sequence[int] = ()) -> str:
    """Every thread is on its own cpus; memory: nodes that it is interleaved over (none: first touch)."""
    lists: dict[tuple[str, int], list[tuple[int, ...]]] = {}
    for thread in plan.threads:
        lists.setdefault((thread.process, thread.node), []).append(thread.cpus)

    def on(group: Touched) -> Whereabouts:
        return _within(plan, lists.get((group.process, group.node), []), 0)

    return _sentence(plan, "every thread on its own cpus", memory, on)


def processes_bound(plan: Plan, memory: Sequence[int] = ()) -> str:
    """Every process has a set of cpus, in which its threads are free."""
    own, threads = processes(plan), Counter(thread.process for thread in plan.threads)

    def on(group: Touched) -> Whereabouts:
        return _within(plan, [own.get(group.process, ())], threads[group.process])

    return _sentence(plan, "one cpuset for the threads of each process", memory, on)


def ranks_bound(plan: Plan) -> str:
    """As forms of ranks see the plan: of one process each thread is a rank."""
    return processes_bound(plan) if len(processes(plan)) > 1 else threads_bound(plan)


def one_set(plan: Plan, memory: Sequence[int] = (), cpus: Sequence[int] = ()) -> str:
    """One set of cpus (usually those of all threads), in which all threads are free."""
    return _sentence(plan, "one cpuset for all threads", memory, _in_one_set(plan, cpus))


def _in_one_set(plan: Plan, cpus: Sequence[int] = ()) -> Callable[[Touched], Whereabouts]:
    where = _within(plan, [tuple(cpus) or all_cpus(plan)], len(plan.threads))
    return lambda _: where


def remarks(lines: Iterable[str], mark: str = "#") -> str:
    """Lines as comments; what comes from the plan ends no comment."""
    return "\n".join(f"{mark} {' '.join(line.split())}" for line in lines)


def lost(plan: Plan, *, threads: bool = True) -> str:
    """What only nlaunch does; threads: whether their own cpus are lost, too.

    Where all is on one node, so is memory where it is touched first, in any order of the threads.
    """
    nodes = {*memory_nodes(plan), *nodes_of(plan, all_cpus(plan))}
    regions = len(plan.memory) if len(nodes) > 1 else 0
    unbound = threads and len({thread.cpus for thread in plan.threads}) > 1
    what = [
        *(["which thread is on which node" if len(nodes) > 1 else "which thread is on which cpu"] * unbound),
        *([f"the nodes of {regions} region{'s' * (regions != 1)} of memory"] if regions else []),
    ]
    return f"lost: {' and '.join(what)} (nlaunch keeps all of it)" if what else "lost: nothing"


def _sentence(plan: Plan, threads: str, memory: Sequence[int], on: Callable[[Touched], Whereabouts]) -> str:
    where = f"memory interleaved over nodes {','.join(map(str, memory))}" if memory else FIRST_TOUCH
    share = local_share(plan.predicted.touched, on, memory, homes(plan))
    whole = plan.predicted.local_share
    if share < 0 or whole < 0:
        return f"kept: {threads}, {where}: which share of the plan that keeps is not known"
    if share > whole:  # a plan may give up local accesses for nearer lines of others
        return f"kept: {threads}, {where}: {100 * share:.0f} % local, by the plan {100 * whole:.0f}"
    return f"kept: {threads}, {where}: {100 * share:.0f} of {100 * whole:.0f} % local"


def _within(plan: Plan, sets: Sequence[Sequence[int]], threads: int) -> Whereabouts:
    """Where threads are that are free in these sets of cpus, one each or one for so many threads."""
    of_cpu = {cpu: node.id for node in plan.machine.nodes for cpu in node.cpus}
    found: dict[int, Fraction] = {}
    for cpus in sets:
        for cpu in cpus:
            node = of_cpu[cpu]
            found[node] = found.get(node, Fraction(0)) + Fraction(1, len(cpus) * len(sets))
    crowded = threads > sum(map(len, sets))
    return Whereabouts({node: float(share) for node, share in found.items()}, STAYS if crowded else 1.0)
