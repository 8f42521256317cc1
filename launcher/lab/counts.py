"""The plugin's counts file: accesses by cpu, task and node of the page.

Text: a line `numaplan-lab-counts 1`, then a line for each pair of a cpu and a task that ran on it, `CPU TASK
EXCLUDED NODE:ACCESSES…` (task in hex, node 64: no node known), then `end`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError

HEAD = b"numaplan-lab-counts 1"
UNKNOWN_NODE = 64


class Counts(NamedTuple):
    """What was counted; rows follow `cpus` (ascending), columns the nodes 0..K-1.

    accesses: (cpus, K) of the program; tasks: (cpus, K) of each of its tasks, by the kernel's address of it,
    ascending; unknown: the program's accesses to pages of no known node; excluded: all accesses of the
    agent and of the launcher.
    """

    accesses: NDArray[np.int64]
    tasks: dict[int, NDArray[np.int64]]
    unknown: int
    excluded: int


def parse_counts(data: bytes, cpus: int, nodes: int) -> Counts:
    """The counts file of a machine with cpus 0..cpus-1 and nodes 0..nodes-1; raises UsageError if damaged."""
    lines = data.split(b"\n")
    if lines[0] != HEAD or lines[-2:] != [b"end", b""]:
        raise UsageError("the counts file is cut short", "run it again")
    tasks: dict[int, NDArray[np.int64]] = {}
    unknown = excluded = 0
    for line in lines[1:-2]:
        try:
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
    tasks = dict(sorted(tasks.items()))
    accesses = sum(tasks.values(), np.zeros((cpus, nodes), dtype=np.int64))
    return Counts(accesses, tasks, unknown, excluded)


def _parse_row(line: bytes) -> tuple[int, int, bool, list[tuple[int, int]]]:
    cpu, task, left_out, *cells = line.split(b" ")
    pairs = [cell.split(b":") for cell in cells]
    found = [(int(node), int(value)) for node, value in pairs]
    if any(not 0 <= node <= UNKNOWN_NODE or value < 0 for node, value in found):
        raise ValueError
    return int(cpu), int(task, 16), left_out == b"1", found
