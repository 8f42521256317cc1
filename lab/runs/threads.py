"""Which thread of the program each of the kernel's tasks was, and what was counted of it."""

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .counts import Counted, Counts
from .results import ThreadCounts
from .tasks import Task, read_tasks

AGENT = 1  # its process id


class Starter(Enum):
    """What the first process is: the program; a launcher, whose child is the program; or one that becomes it.

    The values: how many times the program's first process execs until it is the program, where that matters.
    """

    PROGRAM = 0
    LAUNCHER = 1
    BECOMES = 2


def program_threads(trace: Path, counts: Counts, starter: Starter) -> tuple[Counted, list[ThreadCounts]]:
    """What was counted of the program, and the accesses of each of its threads in order of creation.

    Of a launcher's children the one that accesses most is the program, from when it becomes it; what a first
    process did, or started, before it became the program is left out likewise; else all that was counted is
    the program's. A thread's path is as in a trace, with the process in front where it is not the first
    (`p0.1:0.2`).
    """
    family = name_tasks(read_tasks(trace, counts), counts, starter)
    if family and starter is not Starter.PROGRAM:
        family[0].first_stage = max([family[0].first_stage, *family[0].exec_stages[: starter.value]])
    by_task = [task.counted(counts) for task in family]
    threads = [
        _counts(task, counted[:, : counts.nodes])
        for task, counted in zip(family, by_task, strict=True)
        if counted.any()
    ]
    if starter is Starter.PROGRAM:
        return counts.counted, threads
    return sum(by_task, np.zeros_like(counts.counted)), threads


def name_tasks(tasks: Sequence[Task], counts: Counts, starter: Starter) -> list[Task]:
    """Give the program's tasks their paths, in order of creation; returns those that have one."""
    # The agent's other child, its sampler, does not become another program.
    root = next((task for task in tasks if task.parent == AGENT and task.exec_stages), None)
    if starter is Starter.LAUNCHER and root:
        children = [task for task in tasks if task.parent == root.tid and not task.is_thread]
        root = max(
            children,
            key=lambda task: (int(task.counted(counts)[:, : counts.nodes].sum()), task.tid),
            default=None,
        )
    named: dict[int, Task] = {}
    mains: dict[str, Task] = {}
    for task in tasks:
        parent = named.get(task.parent)
        if task is root:
            task.process, task.path = "p0", "0"
        elif parent is None or (
            starter is Starter.BECOMES and parent is root and task.parent_execs < starter.value
        ):
            continue
        elif task.is_thread:
            parent.made_threads += 1
            task.process, task.path = parent.process, f"{parent.path}.{parent.made_threads}"
        else:
            main = mains[parent.process]
            main.made_processes += 1
            task.process, task.path = f"{parent.process}.{main.made_processes}", "0"
        mains.setdefault(task.process, task)
        named[task.tid] = task
    return list(named.values())


def _counts(task: Task, accesses: NDArray[np.int64]) -> ThreadCounts:
    by_cpu = accesses.sum(axis=1)
    return ThreadCounts(
        path=task.path if task.process == "p0" else f"{task.process}:{task.path}",
        name=task.name,
        tid=task.tid,
        accesses=[int(value) for value in accesses.sum(axis=0)],
        cpus={int(cpu): int(by_cpu[cpu]) for cpu in np.flatnonzero(by_cpu)},
    )
