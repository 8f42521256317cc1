"""The plugin's counts file: accesses by cpu, task and node of the page.

Text: a line `numaplan-lab-counts 2`, then a line for each pair of a cpu and a task that ran on it, `CPU TASK
EXCLUDED NODE:ACCESSES…` (task in hex, node 64: no node known), then `end`. A line `stage TASK` after some of
them ends what was counted of a task: it ended, or became another program. Its place in memory, by which it is
known, may be another task's next.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError

HEAD = b"numaplan-lab-counts 2"
UNKNOWN_NODE = 64
_STAGE = b"stage "


class Counts(NamedTuple):
    """What was counted; rows follow `cpus` (ascending), columns the nodes 0..K-1.

    accesses: (cpus, K) of the program; tasks: (cpus, K) of each of its tasks, by the kernel's address of it,
    ascending; stages: the same cut where a task ended or became another program (as many parts as times, and
    one for what came after; none of tasks that did neither while the kernel was traced); unknown: the
    program's accesses to pages of no known node; excluded: all accesses of the agent and of the launcher.
    """

    accesses: NDArray[np.int64]
    tasks: dict[int, NDArray[np.int64]]
    unknown: int
    excluded: int
    stages: dict[int, list[NDArray[np.int64]]]


def parse_counts(data: bytes, cpus: int, nodes: int) -> Counts:
    """The counts file of a machine with cpus 0..cpus-1 and nodes 0..nodes-1; raises UsageError if damaged."""
    lines = data.split(b"\n")
    if lines[0] != HEAD or lines[-2:] != [b"end", b""]:
        raise UsageError("the counts file is cut short", "run it again")
    tasks: dict[int, NDArray[np.int64]] = {}
    stages: dict[int, list[NDArray[np.int64]]] = {}
    unknown = excluded = 0
    for line in lines[1:-2]:
        try:
            if line.startswith(_STAGE):
                _end_stage(stages, int(line[len(_STAGE) :], 16), tasks, (cpus, nodes))
                continue
            cpu, task, left_out, cells = _parse_row(line)
            row = np.zeros(UNKNOWN_NODE + 1, dtype=np.int64)
            for node, value in cells:
                row[node] += value
            if not 0 <= cpu < cpus or row[nodes:UNKNOWN_NODE].any():
                raise ValueError
        except (ValueError, IndexError, OverflowError):
            raise UsageError(f"the counts file has a bad row {line[:80]!r}", "run it again") from None
        if left_out:
            excluded += int(row.sum())
            continue
        unknown += int(row[UNKNOWN_NODE])
        tasks.setdefault(task, np.zeros((cpus, nodes), dtype=np.int64))[cpu] += row[:nodes]
    for task, parts in stages.items():
        _end_stage(stages, task, tasks, (cpus, nodes))
        tasks[task] = sum(parts, np.zeros((cpus, nodes), dtype=np.int64))
    tasks = {task: counted for task, counted in sorted(tasks.items()) if counted.any()}
    accesses = sum(tasks.values(), np.zeros((cpus, nodes), dtype=np.int64))
    return Counts(accesses, tasks, unknown, excluded, stages)


def _end_stage(
    stages: dict[int, list[NDArray[np.int64]]],
    task: int,
    tasks: dict[int, NDArray[np.int64]],
    shape: tuple[int, int],
) -> None:
    """What was counted of a task since its last stage becomes one of its stages."""
    counted = tasks.pop(task, None)
    stages.setdefault(task, []).append(np.zeros(shape, dtype=np.int64) if counted is None else counted)


def _parse_row(line: bytes) -> tuple[int, int, bool, list[tuple[int, int]]]:
    cpu, task, left_out, *cells = line.split(b" ")
    pairs = [cell.split(b":") for cell in cells]
    found = [(int(node), int(value)) for node, value in pairs]
    if any(not 0 <= node <= UNKNOWN_NODE or value < 0 for node, value in found):
        raise ValueError
    return int(cpu), int(task, 16), left_out == b"1", found
