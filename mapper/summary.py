"""A plan in a few lines for people: what it saves, and which threads go where."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from numaplan.mapper.plan import Plan, PlanThread, Predicted


def summary(plan: Plan, path: Path | None = None) -> list[str]:
    """Lines for a terminal."""
    predicted = plan.predicted
    head = (
        f"{len(plan.threads)} threads on {len(plan.machine.nodes)} nodes ({plan.machine.name or 'machine'})"
    )
    lines = [
        f"{head}, method {plan.method}, objective {plan.objective}",
        f"remote communication  {predicted.remote_share:7.1%}{_against(predicted)}{_gap(plan)}",
        f"load per node         {_loads(predicted)}",
    ]
    if predicted.local_share >= 0:
        regions = f"{len(plan.memory)} region{'s' * (len(plan.memory) != 1)} placed"
        lines.append(f"local memory accesses {predicted.local_share:7.1%}   {regions}")
    lines += [f"  node {node}: threads {names}" for node, names in threads_by_node(plan)]
    if path is not None:
        lines.append(f"plan written to {path}")
    return lines


def threads_by_node(plan: Plan) -> list[tuple[int, str]]:
    """Node id and its threads' names, nodes with threads only, in order."""
    nodes: dict[int, list[PlanThread]] = {}
    for thread in plan.threads:
        nodes.setdefault(thread.node, []).append(thread)
    several = len({thread.process for thread in plan.threads}) > 1
    return [
        (node, ", ".join(f"{t.process}:{t.path}" if several else t.path for t in nodes[node]))
        for node in sorted(nodes)
    ]


def _against(predicted: Predicted) -> str:
    parts = [f"{name} {costs.remote_share:.1%}" for name, costs in predicted.baselines.items()]
    return f"   ({', '.join(parts)})" if parts else ""


def _gap(plan: Plan) -> str:
    predicted = plan.predicted
    value = predicted.hop_cost if plan.objective == "hop" else predicted.remote_comm
    if predicted.lower_bound < 0 or value <= 0:
        return ""
    gap = 1 - predicted.lower_bound / value
    return "   optimal" if gap < 1e-9 else f"   within {gap:.1%} of the lower bound"


def _loads(predicted: Predicted) -> str:
    total = sum(predicted.node_loads)
    if not total:
        return "none"
    return " ".join(f"{load / total:.1%}" for load in _first(predicted.node_loads, 16))


def _first(values: Sequence[float], count: int) -> Iterable[float]:
    return values[:count]
