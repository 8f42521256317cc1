"""What a plan costs that was fitted to another machine: threads that share a cpu beside idle ones."""

from collections import defaultdict

from msgspec import UNSET

from numaplan.common import counted
from numaplan.mapper import Plan

from .plan_fit import lane_of


def idle_beside(plan: Plan) -> str:
    """A sentence where threads that have one cpu each share it with others, and other cpus have none."""
    seats = {(lane_of(thread), thread.cpus) for thread in plan.threads if thread.pool is UNSET}
    on: dict[int, int] = defaultdict(int)
    for _, cpus in seats:
        if len(cpus) == 1:
            on[cpus[0]] += 1
    crowded = [count for count in on.values() if count > 1]
    busy = {cpu for thread in plan.threads for cpu in thread.cpus}
    idle = [cpu for cpu in plan.machine.machine().cpus if cpu not in busy]
    if not crowded or not idle:
        return ""
    shared = f"{sum(crowded)} threads share {counted(len(crowded), 'cpu')}"
    return (
        f"{shared}, with {counted(len(idle), 'cpu')} left idle, as groups of threads were kept together:"
        " a plan for this machine need not ('nmap plan --machine local')"
    )
