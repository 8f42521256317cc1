"""The images of the program's processes, with their threads and what was counted of these."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import THREAD_RECORD, ProcessSpool

from ..runs.counts import RECORDED, Counts
from ..runs.tasks import Task
from .stream import Facts

_NAMES = THREAD_RECORD.names or ()
_COUNTED = _NAMES[_NAMES.index("loads") : _NAMES.index("lost")]


def process_images(family: Sequence[Task], counts: Counts, facts: Facts) -> list[ProcessSpool]:
    """Each process's images by their start (guest's clock); the last has the threads and their counts."""
    processes: dict[str, list[Task]] = {}
    for task in family:
        processes.setdefault(task.process, []).append(task)
    starts = {tasks[0].tid: [tasks[0].born_ns, *tasks[0].exec_ns] for tasks in processes.values()}
    pid_of = {task.tid: tasks[0].tid for tasks in processes.values() for task in tasks}
    images: list[ProcessSpool] = []
    for tasks in processes.values():
        pid, born = tasks[0].tid, tasks[0].born_ns
        creator = pid_of.get(tasks[0].parent, 0)
        before = [start for start in starts.get(creator, ()) if start <= born]
        for number, start in enumerate(starts[pid], start=1):
            images.append(
                ProcessSpool(
                    Path(),
                    pid,
                    start,
                    0,
                    _rows(tasks if number == len(starts[pid]) else (), counts),
                    origin=(creator, before[-1]) if before and number == 1 else (0, 0),
                    footprint=0 if images else facts.footprint,
                )
            )
    if images and len(images[0].threads):
        images[0].threads["lost"][0] = facts.lost
    return sorted(images, key=lambda image: image.start_ns)


def _rows(tasks: Sequence[Task], counts: Counts) -> NDArray[np.void]:
    rows = np.zeros(len(tasks), THREAD_RECORD)
    for birth, (row, task) in enumerate(zip(rows, tasks, strict=True)):
        row["tid"], row["birth"] = task.tid, birth
        row["start_ns"], row["end_ns"] = task.born_ns, task.end_ns
        recorded = task.counted(counts)[:, -RECORDED:].sum(axis=0)
        for name, value in zip(_COUNTED, recorded, strict=False):
            row[name] = value
        row["past"] = recorded[len(_COUNTED) :].reshape(2, -1)
    return rows
