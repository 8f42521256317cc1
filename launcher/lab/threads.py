"""Which thread each of the kernel's tasks was, from what the kernel traced while the program ran.

The agent traces two things at each birth of a task, both by its creator: `task_newtask` (id, flags, name)
and a probe on `wake_up_new_task` (the address of the new task, by which the plugin counts); and renames.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.launcher.lab.counts import Counts
from numaplan.launcher.lab.results import ThreadCounts

AGENT = 1  # its process id
_CLONE_THREAD = 0x10000
_LINE = re.compile(r"\s*.{0,16}-(\d+)\s+\[\d+\]\s+\S+\s+[\d.]+: (\w+): (.*)")
_NEW = re.compile(r"pid=(\d+) comm=(.*) clone_flags=([0-9a-f]+)")
_WAKE = re.compile(r"\(.*\) task=0x([0-9a-f]+)")
_RENAME = re.compile(r"pid=(\d+) oldcomm=.* newcomm=(.*) oom_score_adj")


@dataclass
class _Task:
    tid: int
    parent: int
    is_thread: bool
    name: str
    address: int = 0
    made_threads: int = 0
    made_processes: int = 0
    process: str = ""
    path: str = ""


def read_threads(trace: Path, tasks: Mapping[int, NDArray[np.int64]]) -> list[ThreadCounts]:
    """Accesses of each thread, in order of creation; tasks: counts by address (cpus, nodes).

    A thread's path is as in a trace, with the process in front where it is not the first (`p0.1:0.2`).
    Threads whose task had the same place in memory one after the other cannot be told apart and stand as one,
    their paths joined by `+`.
    """
    family = _name(_read(trace), tasks)
    shared: dict[int, list[_Task]] = {}
    for task in family:
        if task.address in tasks:
            shared.setdefault(task.address, []).append(task)
    return [_counts(members, tasks[address]) for address, members in shared.items()]


def program_only(trace: Path, counts: Counts) -> Counts:
    """The counts without those of tasks that are not the program's, where a launcher made others besides."""
    own = {task.address for task in _name(_read(trace), counts.tasks)}
    tasks = {address: accesses for address, accesses in counts.tasks.items() if address in own}
    if not tasks:
        return counts
    accesses = sum(tasks.values(), np.zeros_like(counts.accesses))
    left_out = int(counts.accesses.sum() - accesses.sum())
    return Counts(accesses, tasks, counts.unknown, counts.excluded + left_out)


def _read(trace: Path) -> dict[int, _Task]:
    try:
        text = trace.read_text(errors="replace")
    except OSError:
        return {}
    tasks: dict[int, _Task] = {}
    newest: dict[int, int] = {}  # the task that each creator is about to wake
    for line in text.splitlines():
        found = _LINE.match(line)
        if not found:
            continue
        creator, event, rest = int(found[1]), found[2], found[3]
        if event == "task_newtask" and (new := _NEW.match(rest)):
            tid = int(new[1])
            tasks[tid] = _Task(tid, creator, bool(int(new[3], 16) & _CLONE_THREAD), new[2])
            newest[creator] = tid
        elif event == "new" and (wake := _WAKE.match(rest)) and creator in newest:
            tasks[newest.pop(creator)].address = int(wake[1], 16)
        elif event == "task_rename" and (rename := _RENAME.match(rest)) and int(rename[1]) in tasks:
            tasks[int(rename[1])].name = rename[2]
    return tasks


def _name(tasks: Mapping[int, _Task], counted: Mapping[int, NDArray[np.int64]]) -> list[_Task]:
    """Give the program's tasks their paths, in order of creation; returns those that have one."""
    roots = [task for task in tasks.values() if task.parent == AGENT]
    if roots and roots[0].address not in counted:  # a launcher, whose accesses are not the program's
        children = [task for task in tasks.values() if task.parent == roots[0].tid and not task.is_thread]
        roots = sorted(children, key=lambda task: (-int(np.sum(counted.get(task.address, 0))), -task.tid))
    named: list[_Task] = []
    for task in tasks.values():
        parent = tasks.get(task.parent)
        if roots and task is roots[0]:
            task.process, task.path = "p0", "0"
        elif parent is None or not parent.path:
            continue
        elif task.is_thread:
            parent.made_threads += 1
            task.process, task.path = parent.process, f"{parent.path}.{parent.made_threads}"
        else:
            main = next(other for other in named if other.process == parent.process)
            main.made_processes += 1
            task.process, task.path = f"{parent.process}.{main.made_processes}", "0"
        named.append(task)
    return named


def _counts(members: list[_Task], accesses: NDArray[np.int64]) -> ThreadCounts:
    paths = [task.path if task.process == "p0" else f"{task.process}:{task.path}" for task in members]
    by_cpu = accesses.sum(axis=1)
    return ThreadCounts(
        path="+".join(paths),
        name=members[0].name,
        tid=members[0].tid,
        accesses=[int(value) for value in accesses.sum(axis=0)],
        cpus={int(cpu): int(by_cpu[cpu]) for cpu in np.flatnonzero(by_cpu)},
    )
