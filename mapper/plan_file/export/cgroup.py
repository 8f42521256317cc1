"""Control groups, version 2: commands that make a group for each process, and start the program in it."""

from shlex import quote

from numaplan.machine import format_list

from ..plan import Plan
from .kept import lost, one_set, processes_bound, remarks
from .placement import all_cpus, command, homes_of, label, memory_nodes, processes

ROOT = "/sys/fs/cgroup"


def cgroup(plan: Plan) -> str:
    """To be run by root; several processes get a group each within that of all."""
    own = processes(plan)
    several = len(own) > 1
    lines = [
        "set -e",
        f"group={ROOT}/numaplan-{label(plan)}",
        f"echo +cpuset >{ROOT}/cgroup.subtree_control",
        *_group("", all_cpus(plan), memory_nodes(plan)),
        '# alone on these cpus, where others are left: echo root >"$group/cpuset.cpus.partition"',
    ]
    if several:
        lines.append('echo +cpuset >"$group/cgroup.subtree_control"')
        for name, cpus in own.items():
            lines += _group(f"/{quote(name)}", cpus, homes_of(plan, cpus))
        lines.append('# put each process into its group as it begins: echo $$ >"$group/NAME/cgroup.procs"')
        lines.append(remarks([processes_bound(plan), lost(plan)]))
    else:
        lines.append(remarks([one_set(plan), lost(plan)]))
        lines.append('echo $$ >"$group/cgroup.procs"')
        lines.append(f"exec {command(plan)}")
    return "\n".join(lines)


def _group(name: str, cpus: tuple[int, ...], nodes: tuple[int, ...]) -> list[str]:
    return [
        f'mkdir -p "$group"{name}',
        f'echo {format_list(cpus)} >"$group"{name}/cpuset.cpus',
        f'echo {format_list(nodes)} >"$group"{name}/cpuset.mems',
    ]
