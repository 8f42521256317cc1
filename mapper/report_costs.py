"""What every method would cost on a trace, for the report page about a plan."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from numaplan.mapper.check import options_of
from numaplan.mapper.compare import compare
from numaplan.mapper.plan import Plan
from numaplan.mapper.problem import TOLERANCE
from numaplan.mapper.restrict import restrict
from numaplan.mapper.workload import Workload

if TYPE_CHECKING:
    from numaplan.analyzer import Analysis
    from numaplan.analyzer.report import MethodCost

MOST_THREADS = 256  # of more, all methods together take longer than the rest of the page


def method_costs(plan: Plan, name: str) -> "Callable[[Analysis], list[MethodCost]]":
    """A function of the trace's analysis: the cost of each method for the plan's objective and machine;
    nothing for more than MOST_THREADS.

    name: the plan's, in errors. Raises UsageError for options in the plan that cannot be.
    """
    options = options_of(plan, "normal", 0, name)
    machine = restrict(plan.machine.machine(), options.nodes, options.smt, options.without_cpus)

    def costs(analysis: "Analysis") -> "list[MethodCost]":
        from numaplan.analyzer.report import MethodCost

        if len(analysis.threads) > MOST_THREADS:
            return []
        phases = analysis.phases
        workload = Workload(
            threads=[(thread.process, thread.path) for thread in analysis.threads],
            comm=analysis.comm,
            loads=analysis.loads,
            sources={},
            phases=np.array([phase.loads for phase in phases]) if phases else None,
            phase_rates=np.array([phase.weight for phase in phases]) if phases else None,
        )
        rows = compare(workload, machine, "all", plan.objective, seed=options.seed, effort=options.effort)
        limit = float("inf")
        if plan.objective == "balanced":
            limit = max(TOLERANCE, min(row.imbalance for row in rows)) + 1e-9
        return [MethodCost(row.method, row.value, row.imbalance <= limit, row.imbalance) for row in rows]

    return costs
