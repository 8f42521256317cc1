"""Which of what was counted on a host is the application's, and not its launcher's."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..runs.counts import Counted, Counts
from ..runs.tasks import Task, read_tasks

# As the kernel calls them (it cuts names after 15 characters): the launchers of Open MPI and MPICH, ours.
_LAUNCHERS = re.compile(
    r"mpirun|mpiexec|orterun|orted|prun|prte|prted|prterun|hydra_\w*|mpi(run|exec)\.\w*|nlaunch|nlab-\w+"
)
_AGENT, _SERVER, _SHELL = "nlab-agent", "nlab-serve", "nlab-sh"  # the last: what the server starts


def of_application(trace: Path, counts: Counts) -> Counted:
    """What was counted of all that launchers started, from when it became another program than a launcher."""
    living: dict[int, list[str]] = {}
    total = np.zeros_like(counts.counted)
    for task in read_tasks(trace, counts):
        programs = stage_programs(task, living.get(task.parent, [_AGENT]))
        living[task.tid] = programs
        total += task.counted_in(counts, [not _LAUNCHERS.fullmatch(program) for program in programs])
    return total


def stage_programs(task: Task, of_parent: Sequence[str]) -> list[str]:
    """What a task was before it became another program, and after each time; of_parent: its parent's."""
    inherited = of_parent[min(task.parent_execs, len(of_parent) - 1)]
    own = list(task.programs)
    if own and inherited == _SERVER:
        own[0] = _SHELL
    return [inherited, *own]
