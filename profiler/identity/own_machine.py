"""The machine that a process may use, be it a rank that its launcher has bound."""

from collections.abc import Mapping

from numaplan.machine import Machine, own_cpuset, read_sysfs

from .rank import rank_of


def machine_named(source: str, environment: Mapping[str, str]) -> Machine:
    """As `Machine.load`; `local` is for a rank what its cpuset allows: launchers bind ranks to a core each,
    and nlaunch binds them anew."""
    if source != "local" or rank_of(environment) is None:
        return Machine.load(source)
    return Machine.of(read_sysfs(cpus=own_cpuset()))
