"""systemd: a drop-in for the unit that starts the program."""

from numaplan.machine import format_list

from ..plan import Plan
from .kept import lost, one_set, remarks, spread_over
from .placement import all_cpus, homes_of, memory_nodes


def systemd(plan: Plan) -> str:
    """Affinity and cpuset, memory policy and the nodes that memory may be on."""
    cpus, spread = format_list(all_cpus(plan)), spread_over(plan)
    notes = [
        "for /etc/systemd/system/UNIT.service.d/numaplan.conf of the unit that starts the program",
        one_set(plan, spread),
        lost(plan),
    ]
    lines = [
        remarks(notes),
        "[Service]",
        f"CPUAffinity={cpus}",
        f"AllowedCPUs={cpus}",
        *_policy(plan, spread),
        f"AllowedMemoryNodes={format_list(memory_nodes(plan))}",
    ]
    return "\n".join(lines)


def _policy(plan: Plan, spread: tuple[int, ...]) -> list[str]:
    """Interleaved; on one node preferably there; else local, which takes no mask."""
    if spread:
        return ["NUMAPolicy=interleave", f"NUMAMask={format_list(spread)}"]
    nodes = homes_of(plan, all_cpus(plan))
    if len(nodes) == 1:
        return ["NUMAPolicy=preferred", f"NUMAMask={nodes[0]}"]
    return ["NUMAPolicy=local"]
