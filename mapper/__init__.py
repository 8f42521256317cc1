"""Mappings: methods behind one signature, their costs, page placement, the plan file."""

from typing import TYPE_CHECKING

from numaplan.common.lazy import lazy_exports

if TYPE_CHECKING:
    from numaplan.mapper.cost import evaluate as evaluate
    from numaplan.mapper.mapping import map_threads as map_threads
    from numaplan.mapper.methods import METHODS as METHODS
    from numaplan.mapper.metrics import Metrics as Metrics
    from numaplan.mapper.pages import PageStats as PageStats
    from numaplan.mapper.pages import place_pages as place_pages
    from numaplan.mapper.plan import Plan as Plan
    from numaplan.mapper.plan import PlanApp as PlanApp
    from numaplan.mapper.plan import PlanMachine as PlanMachine
    from numaplan.mapper.plan import PlanRegion as PlanRegion
    from numaplan.mapper.plan import PlanThread as PlanThread
    from numaplan.mapper.plan import Predicted as Predicted
    from numaplan.mapper.plan import RegionKey as RegionKey
    from numaplan.mapper.plan import Run as Run
    from numaplan.mapper.planner import PlanOptions as PlanOptions
    from numaplan.mapper.planner import make_plan as make_plan
    from numaplan.mapper.planner import same_machine as same_machine
    from numaplan.mapper.seats import assign_cpus as assign_cpus
    from numaplan.mapper.workload import Workload as Workload

_HOME = {
    "METHODS": "methods",
    "Metrics": "metrics",
    "PageStats": "pages",
    "Plan": "plan",
    "PlanApp": "plan",
    "PlanMachine": "plan",
    "PlanOptions": "planner",
    "PlanRegion": "plan",
    "PlanThread": "plan",
    "Predicted": "plan",
    "RegionKey": "plan",
    "Run": "plan",
    "Workload": "workload",
    "assign_cpus": "seats",
    "evaluate": "cost",
    "make_plan": "planner",
    "map_threads": "mapping",
    "place_pages": "pages",
    "same_machine": "planner",
}

__all__ = sorted(_HOME)
__getattr__ = lazy_exports(__name__, _HOME)
