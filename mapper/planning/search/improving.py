"""A placement improved: threads and pages moved in turn, as long as that pays."""

from dataclasses import replace

import numpy as np

from numaplan.machine import OVERLAP, latencies

from ...threads.phases import goal_of
from ...threads.problem import Floats, Nodes
from ...threads.refine import refine
from ..cost.placement import Placement
from ..cost.timed_task import TimedTask

MOST_ROUNDS = 4
WORTH = 1e-3  # of the cost, that a round must save


def improved(task: TimedTask, name: str, places: Nodes) -> Placement:
    """From threads on these places (N,) on."""
    best = task.placed(name, places)
    for _ in range(MOST_ROUNDS):
        assert best.pages is not None and best.pages.homes is not None
        sizes = np.bincount(best.places, minlength=len(task.rows))
        goal = goal_of(replace(task.problem, sizes=sizes), pull_of_homes(task, best.pages.homes))
        found = task.placed(name, refine(goal, best.places))
        if found.cost.total_ns >= best.cost.total_ns * (1 - WORTH):
            break
        best = found
    return best


def pull_of_homes(task: TimedTask, homes: Nodes) -> Floats:
    """(N, places) ns that each thread would wait on each for the pages where they are."""
    stats, threads = task.pages.stats, task.problem.threads
    used = (homes >= 0) & (stats.thread >= 0) & (stats.thread < threads)
    counts = np.zeros((threads, len(task.machine.nodes)))
    np.add.at(counts, (stats.thread[used], homes[used]), stats.all_accesses[used])
    answer: Floats = counts @ latencies(task.machine)[task.rows].T * (stats.period / OVERLAP)
    return answer
