"""OpenMP's environment: cpus in the order of the runtime's thread numbers, which is the order of creation."""

from shlex import quote

from ..parts import PlanThread
from ..plan import Plan
from .kept import lost, remarks, threads_bound
from .placement import one_process, seats


def omp(plan: Plan) -> str:
    """For any runtime."""
    places = ",".join("{" + ",".join(map(str, t.cpus)) + "}" for t in one_process(plan, "omp"))
    return _settings(plan, f"export OMP_PLACES={quote(places)}", "export OMP_PROC_BIND=close")


def gomp(plan: Plan) -> str:
    """For GNU's."""
    cpus = " ".join(map(str, _single_cpus(one_process(plan, "gomp"))))
    return _settings(plan, f"export GOMP_CPU_AFFINITY={quote(cpus)}")


def kmp(plan: Plan) -> str:
    """For Intel's and LLVM's."""
    cpus = ",".join(map(str, _single_cpus(one_process(plan, "kmp"))))
    setting = quote(f"granularity=fine,proclist=[{cpus}],explicit")
    return _settings(plan, f"export KMP_AFFINITY={setting}")


def _settings(plan: Plan, *lines: str) -> str:
    count = f"export OMP_NUM_THREADS={len(seats(plan))}"
    return "\n".join([*lines, count, remarks([threads_bound(plan), lost(plan, threads=False)])])


def _single_cpus(threads: list[PlanThread]) -> list[int]:
    """A cpu of each thread, for forms that take no sets; threads with the same cpus take them in turn."""
    turns: dict[tuple[int, ...], int] = {}
    answer = []
    for thread in threads:
        turn = turns[thread.cpus] = turns.get(thread.cpus, -1) + 1
        answer.append(thread.cpus[turn % len(thread.cpus)])
    return answer
