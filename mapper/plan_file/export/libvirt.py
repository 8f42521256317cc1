"""libvirt: a domain with a virtual cpu for each planned cpu, and a cell for each node, bound to it."""

from collections.abc import Sequence

from numaplan.machine import format_list

from ..plan import Plan
from .kept import lost, one_set
from .placement import all_cpus, homes_of, label, memory_nodes, placed_bytes

LEAST_MIB = 512  # of a cell
LOCAL, REMOTE = 10, 20  # distances where the machine has none


def libvirt(plan: Plan) -> str:
    """A whole domain, so that it can be validated; `cputune`, `numatune`, `vcpu` and `cpu` are the plan's."""
    cpus = _by_node(plan)
    nodes = memory_nodes(plan)
    sizes = [max(LEAST_MIB, -(-2 * placed_bytes(plan, node) >> 20)) for node in nodes]
    notes = [
        "a domain to copy vcpu, cputune, numatune and cpu from: virsh edit",
        f"{one_set(plan)}, in the guest as well",
        lost(plan),
        "nlaunch in the guest, told to remap, keeps the plan: a cell is a node of it, a vcpu a cpu",
    ]
    lines = [
        f"<!-- {'; '.join(notes)} -->",
        "<domain type='kvm'>",
        f"  <name>{label(plan)}</name>",
        f"  <memory unit='MiB'>{sum(sizes)}</memory>",
        f"  <vcpu placement='static' cpuset='{format_list(cpus)}'>{len(cpus)}</vcpu>",
        "  <cputune>",
        *(f"    <vcpupin vcpu='{number}' cpuset='{cpu}'/>" for number, cpu in enumerate(cpus)),
        f"    <emulatorpin cpuset='{format_list(cpus)}'/>",
        "  </cputune>",
        "  <numatune>",
        f"    <memory mode='strict' nodeset='{format_list(nodes)}'/>",
        *(
            f"    <memnode cellid='{cell}' mode='strict' nodeset='{node}'/>"
            for cell, node in enumerate(nodes)
        ),
        "  </numatune>",
        "  <os><type arch='x86_64'>hvm</type></os>",
        "  <cpu mode='host-passthrough'>",
        "    <numa>",
        *_cells(plan, cpus, nodes, sizes),
        "    </numa>",
        "  </cpu>",
        "</domain>",
    ]
    return "\n".join(lines)


def _by_node(plan: Plan) -> list[int]:
    """The planned cpus, node after node."""
    planned = all_cpus(plan)
    return [cpu for node in plan.machine.nodes for cpu in sorted(node.cpus) if cpu in planned]


def _cells(plan: Plan, cpus: Sequence[int], nodes: Sequence[int], sizes: Sequence[int]) -> list[str]:
    place = {node.id: row for row, node in enumerate(plan.machine.nodes)}
    rows = plan.machine.distances
    lines = []
    for cell, (node, size) in enumerate(zip(nodes, sizes, strict=True)):
        own = [number for number, cpu in enumerate(cpus) if homes_of(plan, [cpu]) == (node,)]
        held = f" cpus='{format_list(own)}'" if own else ""
        lines += [f"      <cell id='{cell}'{held} memory='{size}' unit='MiB'>", "        <distances>"]
        for other, one in enumerate(nodes):
            known = rows[place[node]][place[one]] if rows else (LOCAL if one == node else REMOTE)
            lines.append(f"          <sibling id='{other}' value='{round(known)}'/>")
        lines += ["        </distances>", "      </cell>"]
    return lines
