"""More threads than cpus: they wait for each other, whatever is placed where."""

import numpy as np

from numaplan.analyzer import Advice

from .situation import WORTH, Situation

SPARE = 0.5  # of a cpu


def fewer_threads(situation: Situation) -> Advice | None:
    """As many threads as there are cpus; how long the program takes then, nobody can tell from this run."""
    task, usual = situation.task, situation.usual
    cpus = len(task.domains.machine.cpus)
    if task.running <= cpus + SPARE or usual.cost.cpu_ns <= WORTH * task.busy_ns(usual):
        return None
    waits = task.cpus.waits(usual.cpus)
    busy = task.use.accesses
    longer = float((waits * busy).sum() / max(busy.sum(), 1e-300))
    return Advice(
        kind="threads",
        action=f"start {cpus} thread{'s' * (cpus > 1)} that work, as many as there are cpus",
        evidence=f"{task.running:.0f} run at a time on {cpus} cpus: each waits "
        f"{longer / (1 + longer):.0%} of its time for one, and who needs its results longer still",
        change=_change(situation, cpus),
        gain_ns=None,
        gain=None,
    )


def _change(situation: Situation, cpus: int) -> str:
    if situation.trace.meta.get("runtime") == "go":
        return f"GOMAXPROCS={cpus} {situation.command}"
    if situation.openmp:
        return f"OMP_NUM_THREADS={cpus} {situation.command}"
    if int(np.unique([row.process for row in situation.trace.thread_rows]).size) > 1:
        return "start fewer processes at a time, or fewer threads in each"
    return "ask for their number as the program starts: sched_getaffinity, os.sched_getaffinity, nproc"
