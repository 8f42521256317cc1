"""Whether a plan is the right one for larger inputs, too, of which more reaches memory."""

from collections.abc import Sequence

from ..plan_file.parts import AtInput
from ..workload.larger_inputs import LargerInput
from .cost.placement import Placement
from .cost.timed_task import TimedTask
from .cost.unplanned import alone
from .search.candidates import FEW, NEAR, PARTLY, Choice, in_turn, judged
from .search.doubt import doubt
from .search.order import cheapest_first

WORTH = 0.02  # of the cost, that another placement must save


def at_larger_inputs(
    task: TimedTask, whole: TimedTask, made: Choice, inputs: Sequence[LargerInput], method: str
) -> tuple[AtInput, ...]:
    """What was chosen for the recorded input, with others; whole: the task without what options ask."""
    return tuple(_at(task, whole, made, one, method) for one in inputs) if len(task.rows) > 1 else ()


def _at(task: TimedTask, whole: TimedTask, made: Choice, larger: LargerInput, method: str) -> AtInput:
    there, free = (one.with_misses(larger.pages, larger.times) for one in (task, whole))
    tried = sorted((there.again(one) for one in made.tried), key=lambda one: one.cost.total_ns)
    # Pages of the cheapest where they are best with what reaches memory now.
    near: dict[bytes, Placement] = {}
    for one in tried:
        if one.pages is not None and len(near) < NEAR:
            near.setdefault(one.places.tobytes(), one)
    for one in near.values():
        name = one.name.removesuffix(FEW).removesuffix(PARTLY)
        tried.append(there.placed(name, one.places, one.spread))
    if method == "best":
        tried += in_turn(there, cheapest_first(there, tried))
    plan, found = (
        there.again(made.chosen) if made.chosen.bound else alone(there),
        judged(there, tried, method, free if whole is not task else None),
    )
    saved = plan.cost.total_ns - found.chosen.cost.total_ns
    return AtInput(
        times=larger.times,
        bytes=larger.bytes,
        cost=plan.cost.total_ns,
        alone=found.alone.cost.total_ns,
        best=found.chosen.name,
        best_cost=found.chosen.cost.total_ns,
        best_here=(task.again(found.chosen) if found.chosen.bound else alone(task)).cost.total_ns,
        changes=saved > max(WORTH * plan.cost.total_ns, doubt(there, plan, found.chosen)),
    )
