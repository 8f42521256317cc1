"""The machine that a command is told to take: one of a file, or the one that a process may use."""

from collections.abc import Mapping
from pathlib import Path

from numaplan.machine import Machine, own_cpuset, read_sysfs

from ..trace.database import is_trace
from .rank import rank_of


def machine_named(source: str, environment: Mapping[str, str]) -> Machine:
    """As `Machine.load`, or that of a trace; `local` is for a rank what its cpuset allows: launchers bind
    ranks to a core each, and nlaunch binds them anew."""
    if is_trace(Path(source)):
        from ..trace.reader import Trace

        with Trace.open(source) as trace:
            return trace.machine
    if source != "local" or rank_of(environment) is None:
        return Machine.load(source)
    return Machine.of(read_sysfs(cpus=own_cpuset()))
