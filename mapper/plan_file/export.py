"""A plan's thread placement in the languages of other launchers.

The OpenMP forms name cpus in the order of the runtime's thread numbers, which is the order of creation. Rank
forms give one line or mask a process; a plan of one process is written as if each thread were a rank.
"""

from collections.abc import Callable
from shlex import join, quote

from numaplan.common import UsageError
from numaplan.machine import format_list

from .parts import PlanThread
from .plan import Plan

MOST_SLOT = 40  # characters; Open MPI 4.1 overruns a buffer at 49


def export_plan(plan: Plan, form: str) -> str:
    """The text for a form in FORMS; raises UsageError for another, or a plan without threads."""
    if form not in FORMS:
        raise UsageError(f"unknown format {form!r}", f"take one of {', '.join(FORMS)}")
    if not plan.threads:
        raise UsageError("the plan places no thread", "there is nothing to export")
    return FORMS[form](plan) + "\n"


def _creation_order(thread: PlanThread) -> tuple[str, list[int]]:
    return thread.process, [int(part) for part in thread.path.split(".")]


def _in_order(plan: Plan) -> list[PlanThread]:
    return sorted(plan.threads, key=_creation_order)


def _one_process(plan: Plan, form: str) -> list[PlanThread]:
    if len({thread.process for thread in plan.threads}) > 1:
        raise UsageError(f"{form}: the plan has several processes", "use rankfile or slurm, or nlaunch")
    return _in_order(plan)


def _ranks(plan: Plan) -> list[list[int]]:
    """Cpus of each rank: of each process, or of each thread when there is one process."""
    processes: dict[str, list[PlanThread]] = {}
    for thread in _in_order(plan):
        processes.setdefault(thread.process, []).append(thread)
    if len(processes) == 1:
        return [sorted(thread.cpus) for thread in _in_order(plan)]
    return [
        sorted({cpu for thread in processes[name] for cpu in thread.cpus})
        for name in sorted(processes, key=_rank_order)
    ]


def _rank_order(process: str) -> tuple[int, str]:
    digits = process.lstrip("pr").partition(".")[0]
    return int(digits) if digits.isdecimal() else 0, process


def _all_cpus(plan: Plan) -> str:
    return ",".join(map(str, sorted({cpu for thread in plan.threads for cpu in thread.cpus})))


def _command(plan: Plan) -> str:
    return join(plan.app.argv) if plan.app.argv else "./app"


def _single_cpus(threads: list[PlanThread]) -> list[int]:
    """A cpu of each thread, for forms that take no sets; threads with the same cpus take them in turn."""
    turns: dict[tuple[int, ...], int] = {}
    answer = []
    for thread in threads:
        turn = turns[thread.cpus] = turns.get(thread.cpus, -1) + 1
        answer.append(thread.cpus[turn % len(thread.cpus)])
    return answer


def _omp(plan: Plan) -> str:
    places = ",".join("{" + ",".join(map(str, t.cpus)) + "}" for t in _one_process(plan, "omp"))
    count = len(plan.threads)
    return f"export OMP_PLACES={quote(places)}\nexport OMP_PROC_BIND=close\nexport OMP_NUM_THREADS={count}"


def _gomp(plan: Plan) -> str:
    cpus = " ".join(map(str, _single_cpus(_one_process(plan, "gomp"))))
    return f"export GOMP_CPU_AFFINITY={quote(cpus)}\nexport OMP_NUM_THREADS={len(plan.threads)}"


def _kmp(plan: Plan) -> str:
    cpus = ",".join(map(str, _single_cpus(_one_process(plan, "kmp"))))
    setting = quote(f"granularity=fine,proclist=[{cpus}],explicit")
    return f"export KMP_AFFINITY={setting}\nexport OMP_NUM_THREADS={len(plan.threads)}"


def _rankfile(plan: Plan) -> str:
    slots = [format_list(cpus) for cpus in _ranks(plan)]
    long = next((rank for rank, slot in enumerate(slots) if len(slot) > MOST_SLOT), None)
    if long is not None:
        raise UsageError(
            f"rankfile: the cpus of rank {long} ({slots[long]}) are more than mpirun can hold",
            "use nlaunch: mpirun --bind-to none nlaunch --plan PLAN ./app",
        )
    lines = [f"rank {rank}=localhost slot={slot}" for rank, slot in enumerate(slots)]
    return "\n".join(["# mpirun --mca rmaps_rank_file_physical 1 --rankfile THIS_FILE ./app", *lines])


def _slurm(plan: Plan) -> str:
    """On one node, which the plan is for: on several, Slurm would begin the list again on each."""
    ranks = _ranks(plan)
    command = f"srun --nodes=1 --ntasks={len(ranks)}"
    if all(len(cpus) == 1 for cpus in ranks):
        return f"{command} --cpu-bind=map_cpu:{','.join(str(cpus[0]) for cpus in ranks)} {_command(plan)}"
    masks = ",".join(hex(sum(1 << cpu for cpu in cpus)) for cpus in ranks)
    return f"{command} --cpu-bind=mask_cpu:{masks} {_command(plan)}"


def _taskset(plan: Plan) -> str:
    return f"taskset --cpu-list {_all_cpus(plan)} {_command(plan)}"


def _numactl(plan: Plan) -> str:
    return f"numactl --physcpubind={_all_cpus(plan)} --localalloc {_command(plan)}"


def _hwloc(plan: Plan) -> str:
    cpus = " ".join(f"pu:{cpu}" for cpu in _all_cpus(plan).split(","))
    return f"hwloc-bind --physical {cpus} -- {_command(plan)}"


FORMS: dict[str, Callable[[Plan], str]] = {
    "omp": _omp,
    "gomp": _gomp,
    "kmp": _kmp,
    "rankfile": _rankfile,
    "slurm": _slurm,
    "taskset": _taskset,
    "numactl": _numactl,
    "hwloc": _hwloc,
}
