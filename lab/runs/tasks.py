"""The kernel's tasks, from what it traced while the program ran.

The agent traces a task's birth twice, both times by its creator: `task_newtask` (id, flags, name) and a
probe on `wake_up_new_task` (the address of the new task, by which the plugin counts); its renames; and by
probes when it becomes another program (`exec`) and when it ends (`exit`). At the two last the plugin ends a
stage of its counts, so that tasks which had one address after the other are told apart.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .counts import Counted, Counts

_CLONE_THREAD = 0x10000
_LINE = re.compile(r"\s*.{0,16}-(\d+)\s+\[\d+\]\s+\S+\s+(\d+)\.(\d{1,9}): (\w+): (.*)")
_NEW = re.compile(r"pid=(\d+) comm=(.*) clone_flags=([0-9a-f]+)")
_WAKE = re.compile(r"\(.*\) task=0x([0-9a-f]+)")
_RENAME = re.compile(r"pid=(\d+) oldcomm=.* newcomm=(.*) oom_score_adj")


@dataclass
class Task:
    """One task, by the kernel's address of it.

    born_ns, exec_ns, end_ns: by the guest's CLOCK_MONOTONIC, up to a microsecond early; end -1: it lived on;
    first_stage, exec_stages, end_stage: of its address, at its birth, after each exec and at its end;
    parent_execs: how often its parent had become another program when it was born; programs: the names of
    those that it became; process, path: its thread's name, empty where it is none of the program's.
    """

    tid: int
    parent: int
    is_thread: bool
    name: str
    address: int = 0
    born_ns: int = 0
    exec_ns: list[int] = field(default_factory=list)
    end_ns: int = -1
    first_stage: int = 0
    exec_stages: list[int] = field(default_factory=list)
    end_stage: int | None = None
    parent_execs: int = 0
    programs: list[str] = field(default_factory=list)
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

    def counted_in(self, counts: Counts, wanted: Sequence[bool]) -> Counted:
        """What was counted of it in those of its stages that are wanted: before it became another program,
        and after each time."""
        none = np.zeros_like(counts.counted)
        if self.address not in counts.stages:
            return counts.tasks.get(self.address, none) if wanted[-1] else none
        parts = counts.stages[self.address]
        starts = [self.first_stage, *self.exec_stages]
        ends = [*self.exec_stages, len(parts) if self.end_stage is None else self.end_stage]
        stages = zip(starts, ends, wanted, strict=True)
        return sum((part for a, b, mine in stages if mine for part in parts[a:b]), none)


def read_tasks(trace: Path, counts: Counts) -> list[Task]:
    """All tasks born during the trace, in order of their births."""
    try:
        text = trace.read_text(errors="replace")
    except OSError:
        return []
    born: list[Task] = []
    living: dict[int, Task] = {}
    newest: dict[int, Task] = {}  # the task that each creator is about to wake
    stages: dict[int, int] = {}  # that ended so far, by address
    for creator, time_ns, event, rest in _events(text):
        task = living.get(creator)
        if event == "task_newtask" and (new := _NEW.match(rest)):
            newest[creator] = Task(int(new[1]), creator, bool(int(new[3], 16) & _CLONE_THREAD), new[2])
        elif event == "new" and (wake := _WAKE.match(rest)) and creator in newest:
            child = newest.pop(creator)
            child.address = int(wake[1], 16)
            child.born_ns = time_ns
            child.first_stage = stages.get(child.address, 0)
            child.parent_execs = len(task.exec_stages) if task else 0
            living[child.tid] = child
            born.append(child)
        elif event in ("exec", "exit") and task:
            stages[task.address] = stages.get(task.address, 0) + 1
            if event == "exit":
                task.end_stage = stages[task.address]
                task.end_ns = time_ns
            else:
                task.exec_stages.append(stages[task.address])
                task.exec_ns.append(time_ns)
                task.programs.append("")
        elif event == "task_rename" and (rename := _RENAME.match(rest)) and int(rename[1]) in living:
            renamed = living[int(rename[1])]
            renamed.name = rename[2]
            if renamed.programs and not renamed.programs[-1]:  # the first name of what it became
                renamed.programs[-1] = rename[2]
    for one in born:
        counted = len(counts.stages.get(one.address, [None])) - 1
        _without_older(one, stages.get(one.address, 0), counted)
    return born


def _without_older(task: Task, traced: int, counted: int) -> None:
    """Stages that ended at its place beyond those traced are of a task from before: the first ones."""
    older = max(counted - traced, 0)
    task.first_stage += older
    task.exec_stages = [stage + older for stage in task.exec_stages]
    task.end_stage = None if task.end_stage is None else task.end_stage + older


def _events(text: str) -> Iterable[tuple[int, int, str, str]]:
    """(task id, time in ns, event, the rest) of each line."""
    for line in text.splitlines():
        if found := _LINE.match(line):
            yield int(found[1]), int(found[2]) * 10**9 + int(found[3].ljust(9, "0")), found[4], found[5]
