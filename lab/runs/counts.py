"""The plugin's counts file: accesses by cpu, task and node of the page, and what left the modelled caches.

Text: a line `numaplan-lab-counts 5`, then a line for each pair of a cpu and a task that ran on it, `CPU TASK
EXCLUDED NODE:ACCESSES… pNODE:POLLS…` (task in hex, node 64: no node known; polls are accesses of loops that
only wait, which do not count among the others), with caches also `mNODE:ACCESSES`, those
that no cache answered, `cCPU:LINES`, those that were taken from that cpu's caches, and `w0:ACCESSES`, what
others made while the task waited for its cpu, and in recordings `rNUMBER:COUNT`, exact counts by the numbers
of RECORDED; then `end`. A line `stage TASK` after some of them ends what
was counted of a task: it ended, or became another program. Its place in memory, by which it is known, may be
another task's next.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError
from numaplan.machine import MOST_SIZES

HEAD = b"numaplan-lab-counts 5"
UNKNOWN_NODE = 64
# What recordings count of a task: its counters, and past how many caches of several sizes accesses went.
RECORDED = 10 + 2 * MOST_SIZES
_STAGE = b"stage "

Counted = NDArray[np.int64]


class Counts(NamedTuple):
    """What was counted; rows follow `cpus` (ascending, C of them).

    counted: (C, K + K + C + 1 + K + RECORDED) of the program: accesses by node, those that reached memory
    by node, lines taken by cpu, accesses waited for, polls by node, and what recordings count; tasks: the
    same of each of its tasks, by the kernel's address of it, ascending; stages: the same cut where a task
    ended or became another program (as many parts as times, and one for what came after; none of tasks
    that did neither while the kernel was traced); unknown: the program's accesses to pages of no known
    node; excluded: all accesses of the agent and of the launcher.
    """

    nodes: int
    counted: Counted
    tasks: dict[int, Counted]
    unknown: int
    excluded: int
    stages: dict[int, list[Counted]]

    @property
    def accesses(self) -> Counted:
        """(C, K) accesses to the memory of each node, wherever they were answered."""
        return self.counted[:, : self.nodes]

    @property
    def memory(self) -> Counted:
        """(C, K) accesses that no cache answered; zeros where none was modelled."""
        return self.counted[:, self.nodes : 2 * self.nodes]

    @property
    def lines(self) -> Counted:
        """(C, C) lines that each cpu (row) took from the caches of another; zeros likewise."""
        return self.counted[:, 2 * self.nodes : -1 - RECORDED - self.nodes]

    @property
    def waited(self) -> Counted:
        """(C,) accesses that other tasks made on each cpu while one waited for its turn there."""
        return self.counted[:, -1 - RECORDED - self.nodes]

    @property
    def polls(self) -> Counted:
        """(C, K) accesses beside these, by loops that only waited."""
        return self.counted[:, -self.nodes - RECORDED : -RECORDED]


def parse_counts(data: bytes, cpus: int, nodes: int) -> Counts:
    """The counts file of a machine with cpus 0..cpus-1 and nodes 0..nodes-1; raises UsageError if damaged."""
    lines = data.split(b"\n")
    if lines[0] != HEAD or lines[-2:] != [b"end", b""]:
        raise UsageError("the counts file is cut short", "run it again")
    tasks: dict[int, Counted] = {}
    stages: dict[int, list[Counted]] = {}
    shape = (cpus, 3 * nodes + cpus + 1 + RECORDED)
    unknown = excluded = 0
    for line in lines[1:-2]:
        try:
            if line.startswith(_STAGE):
                _end_stage(stages, int(line[len(_STAGE) :], 16), tasks, shape)
                continue
            cpu, task, left_out, cells = _parse_row(line)
            if not 0 <= cpu < cpus:
                raise ValueError
            row, lost = np.zeros(shape[1], dtype=np.int64), 0
            for what, number, value in cells:
                if what in (b"", b"m", b"p") and number == UNKNOWN_NODE:
                    lost += value if what == b"" else 0
                else:
                    row[_column(what, number, nodes, cpus)] += value
        except (ValueError, IndexError, OverflowError):
            raise UsageError(f"the counts file has a bad row {line[:80]!r}", "run it again") from None
        if left_out:
            excluded += int(row[:nodes].sum()) + lost
            continue
        unknown += lost
        tasks.setdefault(task, np.zeros(shape, dtype=np.int64))[cpu] += row
    for task, parts in stages.items():
        _end_stage(stages, task, tasks, shape)
        tasks[task] = sum(parts, np.zeros(shape, dtype=np.int64))
    tasks = {task: counted for task, counted in sorted(tasks.items()) if counted.any()}
    counted = sum(tasks.values(), np.zeros(shape, dtype=np.int64))
    return Counts(nodes, counted, tasks, unknown, excluded, stages)


def _column(what: bytes, number: int, nodes: int, cpus: int) -> int:
    """Where a cell is counted; raises ValueError for a node or cpu that is not there."""
    first, count = {
        b"": (0, nodes),
        b"m": (nodes, nodes),
        b"c": (2 * nodes, cpus),
        b"w": (2 * nodes + cpus, 1),
        b"p": (2 * nodes + cpus + 1, nodes),
        b"r": (3 * nodes + cpus + 1, RECORDED),
    }[what]
    if not 0 <= number < count:
        raise ValueError
    return first + number


def _end_stage(
    stages: dict[int, list[Counted]],
    task: int,
    tasks: dict[int, Counted],
    shape: tuple[int, int],
) -> None:
    """What was counted of a task since its last stage becomes one of its stages."""
    counted = tasks.pop(task, None)
    stages.setdefault(task, []).append(np.zeros(shape, dtype=np.int64) if counted is None else counted)


def _parse_row(line: bytes) -> tuple[int, int, bool, list[tuple[bytes, int, int]]]:
    """A row's cpu, task, whether it is left out, and its cells: what, node or cpu, count."""
    cpu, task, left_out, *cells = line.split(b" ")
    found = []
    for cell in cells:
        name, value = cell.split(b":")
        what = name[:1] if name[:1] in (b"m", b"c", b"w", b"r", b"p") else b""
        found.append((what, int(name[len(what) :]), int(value)))
    if any(value < 0 for _, _, value in found):
        raise ValueError
    return int(cpu), int(task, 16), left_out == b"1", found
