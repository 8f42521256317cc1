"""Which cpus threads have that the plan does not name: those of a pool that grows, or of their process."""

from collections.abc import Collection, Sequence

from msgspec import UNSET

from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanThread

HARDLY = 0.05  # of a thread's mean load


def processes_of(plan: Plan) -> set[str]:
    """The processes that the plan has threads of."""
    return {thread.process for thread in plan.threads}


def floating_cpus(
    plan: Plan, machine: Machine, unplanned: str, everything: Sequence[int]
) -> dict[str, Sequence[int]]:
    """Cpus of threads that the plan does not name, by process; "": processes that it does not name."""
    if unplanned == "inherit":
        return {}
    floating: dict[str, Sequence[int]] = {"": everything}
    for process in processes_of(plan):
        own = {cpu for thread in _working(plan, process) for cpu in thread.cpus}
        nodes = {machine.node_of_cpu.get(cpu) for cpu in own}
        near = tuple(cpu for cpu in everything if machine.node_of_cpu[cpu] in nodes)
        floating[process] = near if unplanned == "float" and near else everything
    return floating


def pool_cpus(plan: Plan) -> dict[tuple[str, int], Sequence[int]]:
    """Cpus of the pools that work, by process and number."""
    found: dict[tuple[str, int], set[int]] = {}
    for process in processes_of(plan):
        working = {thread.pool for thread in _working(plan, process)}
        for thread in plan.threads:
            if thread.process == process and thread.pool is not UNSET and thread.pool in working:
                found.setdefault((process, thread.pool), set()).update(thread.cpus)
    return {pool: sorted(cpus) for pool, cpus in found.items()}


def pool_of_makers(plan: Plan, pools: Collection[tuple[str, int]]) -> dict[tuple[str, str], int]:
    """Number of the pool of what a thread (process, path) makes beyond the plan: its own, else that of the
    last planned thread that it made. pools: process and number of those that count."""
    own = {
        (thread.process, thread.path): thread.pool
        for thread in plan.threads
        if thread.pool is not UNSET and (thread.process, thread.pool) in pools
    }
    last = {
        (thread.process, thread.path.rpartition(".")[0]): (thread.process, thread.path)
        for thread in _as_made(plan)
    }
    return {maker: own[made] for maker, made in last.items() if made in own} | own


def first_in_lanes(plan: Plan) -> dict[tuple[str, str], str]:
    """Path of the first thread on the same seat through time as each (process, path), of those that a thread
    of the plan's made and that are of no pool."""
    first: dict[tuple[str, str, int], str] = {}
    answer = {}
    for thread in _as_made(plan):
        if thread.pool is not UNSET:
            continue
        seat = (thread.process, thread.path.rpartition(".")[0], thread.lane or 0)
        path = thread.path if thread.lane is UNSET else first.setdefault(seat, thread.path)
        answer[thread.process, thread.path] = path
    return answer


def _as_made(plan: Plan) -> list[PlanThread]:
    """The threads that one made, in the order in which it did."""
    made = [thread for thread in plan.threads if "." in thread.path]
    return sorted(made, key=lambda thread: (len(thread.path), thread.path))


def _working(plan: Plan, process: str) -> list[PlanThread]:
    """Threads of a process but those of pools with hardly any load, which may be where nobody else is: what
    others come to work on is not there."""
    own = [thread for thread in plan.threads if thread.process == process]
    least = HARDLY * sum(thread.load for thread in own) / len(own)
    return [thread for thread in own if thread.pool is UNSET or thread.load >= least]
