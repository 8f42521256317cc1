"""A container or pod whose cpus are known only when it starts: the plan is fitted to them."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from numaplan.common import UsageError
from numaplan.machine import Machine, format_list, own_cpuset, parse_list
from numaplan.mapper import Plan

from .plan_fit import is_other_machine, remap_plan

# What those who make containers leave in them; the last two are Apptainer's, under both of its names.
_VARIABLES = ("container", "KUBERNETES_SERVICE_HOST", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
_FILES = (".dockerenv", "run/.containerenv", "run/systemd/container")
_GROUPS = re.compile(r"/(docker[-/]|kubepods|libpod-|lxc[./]|crio-|cri-containerd-)")


def fit_to_container(
    plan: Plan,
    machine: Machine,
    environment: Mapping[str, str],
    root: Path = Path("/"),
    cpuset: Collection[int] | None = None,
) -> tuple[Plan, str]:
    """The plan as it fits a container that has fewer cpus than the plan's machine, and a line that says so.

    The plan itself and no line where it fits as it is, outside containers, and where the container has all
    cpus of the machine: then the plan is for another one, or somebody in the container has bound us. root:
    where files are looked for; cpuset: the container's cpus, if not to be asked for.
    """
    if not is_other_machine(plan, machine) or not in_container(environment, root):
        return plan, ""
    own, online = len(own_cpuset() if cpuset is None else cpuset), _online(root)
    if not own < online or not len(machine.cpus) < sum(len(node.cpus) for node in plan.machine.nodes):
        return plan, ""
    here = f"{len(machine.cpus)} of {online} cpus ({format_list(machine.cpus)})"
    line = (
        f"a container with {here}: the plan is fitted to them,"
        " groups of threads kept together (--no-remap: refuse it)"
    )
    return remap_plan(plan, machine), line


def in_container(environment: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Whether something tells that this process is in a container."""
    if any(environment.get(name) for name in _VARIABLES) or any((root / name).exists() for name in _FILES):
        return True
    return _GROUPS.search(_read(root / "proc/self/cgroup")) is not None


def _online(root: Path) -> int:
    """Cpus of the machine that are online; 0: not known."""
    try:
        return len(parse_list(_read(root / "sys/devices/system/cpu/online"), "online cpus"))
    except UsageError:
        return 0


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
