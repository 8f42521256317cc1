"""Podman's and Docker's cpuset of a container: its cpus, and the nodes that it may have memory on."""

from shlex import quote

from numaplan.machine import format_list

from ..plan import Plan
from .kept import lost, one_set, remarks
from .placement import all_cpus, command, label, memory_nodes


def podman(plan: Plan) -> str:
    """For `podman create` and `podman run`, which take the same words."""
    return _create(plan, "podman")


def docker(plan: Plan) -> str:
    """The same for Docker."""
    return _create(plan, "docker")


def _create(plan: Plan, tool: str) -> str:
    sets = f"--cpuset-cpus={format_list(all_cpus(plan))} --cpuset-mems={format_list(memory_nodes(plan))}"
    line = f'{tool} create --name {quote(label(plan))} {sets} "${{IMAGE:?}}" {command(plan)}'
    notes = [
        one_set(plan),
        lost(plan),
        "nlaunch in the container needs --cap-add=SYS_NICE for memory: without, mbind is forbidden",
    ]
    return f"{line}\n{remarks(notes)}"
