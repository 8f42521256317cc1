"""Workloads for the objective `time`, and their plans."""

import numpy as np

from numaplan.analyzer import PageCounts
from numaplan.mapper import Plan, PlanOptions, RegionKey, Workload, make_plan
from numaplan.mapper.workload.use import ThreadUse
from numaplan.profiler import Machine

PAGE, PAGES = 4096, 40
BY_ROW = ("region", "page", "thread", "accesses", "writes", "before", "missed", "missed_before")
PAIRS = {(0, 3): 1e6, (1, 2): 1e6}


def workload(
    threads: int = 4,
    lines: dict[tuple[int, int], float] | None = None,
    users: list[list[int]] | None = None,
    *,
    keeps: bool = True,
    together: float = 1.0,
    missed: bool = True,
) -> Workload:
    """users: of each region, the threads that use its pages in turns; main touches all of them first."""
    comm = np.zeros((threads, threads))
    for (one, other), count in (lines or {}).items():
        comm[one, other] = comm[other, one] = count
    rows = np.array(
        [
            (region, page, thread)
            for region, own in enumerate(users or [])
            for page in range(PAGES)
            for thread in ([own[page % len(own)]] if keeps else sorted(own))
        ],
        np.int64,
    ).reshape(-1, 3)
    counts = np.full(len(rows), 500)
    pages = PageCounts(
        [RegionKey(kind="heap", name=f"r{i}", bytes=PAGES * PAGE) for i in range(len(users or []))],
        *rows.T,
        counts,
        counts // 2,
        toucher=np.zeros(len(rows), np.int64),
        before=np.where(np.append(True, np.diff(rows[:, 1]) != 0)[: len(rows)], 1, 0),
        missed=counts // 5 if missed else 0 * counts,
        missed_before=0 * counts,
        elsewhere=np.zeros((threads, threads)),
        elsewhere_missed=np.zeros((threads, threads)),
    )
    apart = together * (1 - np.eye(threads))
    return Workload(
        [("p0", f"0.{i}" if i else "0") for i in range(threads)],
        comm,
        np.ones(threads),
        {},
        pages=pages,
        use=ThreadUse(np.full(threads, 1e7), comm / 2, apart, exact=True),
        keeps=(keeps,) * threads,
    )


def plan_of(work: Workload, machine: str = "2x2", **options: object) -> Plan:
    return make_plan(work, Machine.load(machine), PlanOptions(**options)).plan  # type: ignore[arg-type]


def plan_on(content: dict[str, object], work: Workload, **options: object) -> Plan:
    return make_plan(work, Machine.from_dict(content), PlanOptions(**options)).plan  # type: ignore[arg-type]


def nodes_of(plan: Plan) -> list[int]:
    return [thread.node for thread in plan.threads]
