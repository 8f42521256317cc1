"""Which thread each of the kernel's tasks was, from what the kernel traced while the program ran.

The agent traces a task's birth twice, both times by its creator: `task_newtask` (id, flags, name) and a
probe on `wake_up_new_task` (the address of the new task, by which the plugin counts); its renames; and by
probes when it becomes another program (`exec`) and when it ends (`exit`). At the two last the plugin ends a
stage of its counts, so that tasks which had one address after the other are told apart.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .counts import Counted, Counts
from .results import ThreadCounts

AGENT = 1  # its process id
_CLONE_THREAD = 0x10000
_LINE = re.compile(r"\s*.{0,16}-(\d+)\s+\[\d+\]\s+\S+\s+[\d.]+: (\w+): (.*)")
_NEW = re.compile(r"pid=(\d+) comm=(.*) clone_flags=([0-9a-f]+)")
_WAKE = re.compile(r"\(.*\) task=0x([0-9a-f]+)")
_RENAME = re.compile(r"pid=(\d+) oldcomm=.* newcomm=(.*) oom_score_adj")


class Starter(Enum):
    """What the first process is: the program; a launcher, whose child is the program; or one that becomes it.

    The values: how many times the program's first process execs until it is the program, where that matters.
    """

    PROGRAM = 0
    LAUNCHER = 1
    BECOMES = 2


@dataclass
class _Task:
    """first_stage, exec_stages, end_stage: of its address, at its birth, after each exec and at its end;
    parent_execs: how often its parent had become another program when it was born.
    """

    tid: int
    parent: int
    is_thread: bool
    name: str
    address: int = 0
    first_stage: int = 0
    exec_stages: list[int] = field(default_factory=list)
    end_stage: int | None = None
    parent_execs: int = 0
    made_threads: int = 0
    made_processes: int = 0
    process: str = ""
    path: str = ""

    def counted(self, counts: Counts) -> Counted:
        """What was counted of this task alone."""
        none = np.zeros_like(counts.counted)
        if self.address in counts.stages:
            return sum(counts.stages[self.address][self.first_stage : self.end_stage], none)
        return counts.tasks.get(self.address, none)


def program_threads(trace: Path, counts: Counts, starter: Starter) -> tuple[Counted, list[ThreadCounts]]:
    """What was counted of the program, and the accesses of each of its threads in order of creation.

    Of a launcher's children the one that accesses most is the program, from when it becomes it; what a first
    process did, or started, before it became the program is left out likewise; else all that was counted is
    the program's. A thread's path is as in a trace, with the process in front where it is not the first
    (`p0.1:0.2`).
    """
    family = _name(_read(trace, counts), counts, starter)
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


def _read(trace: Path, counts: Counts) -> list[_Task]:
    """All tasks born during the trace, in order of their births."""
    try:
        text = trace.read_text(errors="replace")
    except OSError:
        return []
    born: list[_Task] = []
    living: dict[int, _Task] = {}
    newest: dict[int, _Task] = {}  # the task that each creator is about to wake
    stages: dict[int, int] = {}  # that ended so far, by address
    for creator, event, rest in _events(text):
        task = living.get(creator)
        if event == "task_newtask" and (new := _NEW.match(rest)):
            newest[creator] = _Task(int(new[1]), creator, bool(int(new[3], 16) & _CLONE_THREAD), new[2])
        elif event == "new" and (wake := _WAKE.match(rest)) and creator in newest:
            child = newest.pop(creator)
            child.address = int(wake[1], 16)
            child.first_stage = stages.get(child.address, 0)
            child.parent_execs = len(task.exec_stages) if task else 0
            living[child.tid] = child
            born.append(child)
        elif event in ("exec", "exit") and task:
            stages[task.address] = stages.get(task.address, 0) + 1
            if event == "exit":
                task.end_stage = stages[task.address]
            else:
                task.exec_stages.append(stages[task.address])
        elif event == "task_rename" and (rename := _RENAME.match(rest)) and int(rename[1]) in living:
            living[int(rename[1])].name = rename[2]
    for one in born:
        counted = len(counts.stages.get(one.address, [None])) - 1
        _without_older(one, stages.get(one.address, 0), counted)
    return born


def _without_older(task: _Task, traced: int, counted: int) -> None:
    """Stages that ended at its place beyond those traced are of a task from before: the first ones."""
    older = max(counted - traced, 0)
    task.first_stage += older
    task.exec_stages = [stage + older for stage in task.exec_stages]
    task.end_stage = None if task.end_stage is None else task.end_stage + older


def _events(text: str) -> Iterable[tuple[int, str, str]]:
    """(task id, event, the rest) of each line."""
    for line in text.splitlines():
        if found := _LINE.match(line):
            yield int(found[1]), found[2], found[3]


def _name(tasks: list[_Task], counts: Counts, starter: Starter) -> list[_Task]:
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
    named: dict[int, _Task] = {}
    mains: dict[str, _Task] = {}
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


def _counts(task: _Task, accesses: NDArray[np.int64]) -> ThreadCounts:
    by_cpu = accesses.sum(axis=1)
    return ThreadCounts(
        path=task.path if task.process == "p0" else f"{task.process}:{task.path}",
        name=task.name,
        tid=task.tid,
        accesses=[int(value) for value in accesses.sum(axis=0)],
        cpus={int(cpu): int(by_cpu[cpu]) for cpu in np.flatnonzero(by_cpu)},
    )
