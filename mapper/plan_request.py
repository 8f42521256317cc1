"""What `nmap plan` was asked for, and doing it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaplan.common import UsageError
from numaplan.mapper.inputs import read_input, say

if TYPE_CHECKING:
    from numaplan.mapper.reading import Opening
    from numaplan.profiler.machine import Machine

MOST_CPUS = 1 << 16  # no machine has more; a range may not take memory without end


class PlanRequest(msgspec.Struct, frozen=True):
    """A command line's words: fields are the options of `nmap plan`, as cli_plan.py describes them."""

    traces: Sequence[Path] = ()
    comm: Path | None = None
    loads: Path | None = None
    machine: str | None = None
    method: str = "best"
    objective: str = "balanced"
    output: Path = Path("plan.json")
    seed: int = 0
    effort: str = "normal"
    tolerance: float = 0.05
    nodes: str = ""
    smt: str = "share"
    without_cpus: str = ""
    beside: Sequence[Path] = ()
    pin: Sequence[str] = ()
    phases: Path | None = None
    symmetrise: bool = False
    next_touch: bool = False


def write_plan(request: PlanRequest, opening: "Opening | None" = None) -> None:
    """Make the plan, write it, show its summary; raises NumaplanError for what cannot be planned.

    opening: of the first trace, where it has begun.
    """
    from numaplan.mapper.methods import find_method
    from numaplan.mapper.pins import read_pins
    from numaplan.mapper.planner import PlanOptions, make_plan
    from numaplan.mapper.problem import check_words
    from numaplan.mapper.summary import summary

    find_method(request.method)  # now rather than when a large trace has been read
    check_words(request.objective, request.effort)
    workload, target = read_input(
        request.traces,
        request.comm,
        request.loads,
        request.machine,
        phases=request.phases,
        by_phase=request.objective == "phased",
        symmetrise=request.symmetrise,
        opening=opening,
    )
    options = PlanOptions(
        method=request.method,
        objective=request.objective,
        effort=request.effort,
        seed=request.seed,
        tolerance=request.tolerance,
        nodes=_node_list(request.nodes),
        smt=request.smt,
        without_cpus=_taken(_cpu_list(request.without_cpus), request.beside, target),
        pins=read_pins(list(request.pin)),
        next_touch=request.next_touch,
    )
    planned = make_plan(workload, target, options)
    planned.plan.save(request.output)
    for note in planned.notes:
        say(note)
    print("\n".join(summary(planned.plan, request.output)))


def _taken(cpus: tuple[int, ...], plans: Sequence[Path], machine: "Machine") -> tuple[int, ...]:
    """The cpus to keep free: those named, and those of other plans for the same machine."""
    from numaplan.mapper.plan import Plan
    from numaplan.mapper.planner import same_machine

    taken = set(cpus)
    for path in plans:
        plan = Plan.load(path)
        same_machine(plan, machine, str(path))
        taken |= {cpu for thread in plan.threads for cpu in thread.cpus}
    return tuple(sorted(taken))


def _node_list(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise UsageError(f"--nodes {text}", "give node ids separated by commas, such as 0,2") from None


def _cpu_list(text: str) -> tuple[int, ...]:
    """Cpus of a list such as 0,4-7."""
    cpus: list[int] = []
    try:
        for part in text.split(",") if text else []:
            first, _, last = part.partition("-")
            low, high = int(first), int(last or first)
            if not 0 <= low <= high < MOST_CPUS:
                raise ValueError
            cpus += range(low, high + 1)
    except ValueError:
        raise UsageError(f"--without-cpus {text}", "give cpus and ranges, such as 0,4-7") from None
    return tuple(dict.fromkeys(cpus))
