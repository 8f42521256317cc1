"""Figure of what a plan is expected to cost, by what threads wait for, beside all that it was chosen from."""

from collections.abc import Mapping
from typing import Any

Figure = dict[str, Any]

# Of a plan's cost (machine/cost.py): what is waited for, and its place in the page's colours of nodes.
PARTS = {
    "memory_ns": ("memory", 0),
    "queue_ns": ("busy memory", 1),
    "lines_ns": ("lines of other threads", 2),
    "cpu_ns": ("a cpu", 3),
    "moves_ns": ("pages that the kernel moves", 4),
}
_TOTAL = ("all together", 7)  # of plans that say no more
ALONE = "alone"
MOST = 12  # bars
_NS = 1e-6  # in ms


def cost_figures(predicted: Mapping[str, Any], *, places_nothing: bool) -> list[Figure]:
    """One bar a placement, the plan's at the top; none where the plan says nothing of costs.

    predicted: of a plan.json; the first of its `costs` is that of leaving the program alone, the second that
    of the best placement.
    """
    costs: Mapping[str, float] = predicted.get("costs") or {}
    if ALONE not in costs or len(costs) < 2 or not any(costs.values()):
        return []
    best = next(name for name in costs if name != ALONE)
    first = ALONE if places_nothing else best
    others = sorted((name for name in costs if name not in (ALONE, best)), key=lambda name: costs[name])
    shown = [first, best if places_nothing else ALONE, *others][:MOST]
    labels = [_label(name, is_plan=name == first) for name in shown]
    parts: Mapping[str, Mapping[str, float]] = predicted.get("candidate_parts") or {}
    known = all(name in parts for name in shown)
    values = {
        **({part: [parts[name].get(part, 0.0) for name in shown] for part in PARTS} if known else {}),
        **({} if known else {"": [costs[name] for name in shown]}),
    }
    hidden = len(costs) - len(shown)
    more = "1 more placement was" if hidden == 1 else f"{hidden} more placements were"
    return [
        {
            "id": "expected-cost",
            "title": "Expected waiting: the plan, leaving it alone, and what else was tried",
            "about": "How long the threads are expected to wait, all together, for what; less is better."
            + (f" {more} tried, which cost more." if hidden else ""),
            "shape": "wide",
            "full": True,
            "data": [_bars(part, waits, labels) for part, waits in values.items() if any(waits)],
            "layout": {
                "barmode": "stack",
                "xaxis": {"title": {"text": "ms"}, "rangemode": "tozero"},
                "yaxis": {"type": "category", "autorange": "reversed", "showgrid": False, "dtick": 1},
                "bargap": 0.2,
                "showlegend": True,
                "legend": {
                    "orientation": "h",
                    "y": 1.02,
                    "yanchor": "bottom",
                    "x": 0,
                    "traceorder": "normal",
                },
            },
        }
    ]


def _label(name: str, *, is_plan: bool) -> str:
    called = "left alone" if name == ALONE else name
    return f"<b>the plan</b>: {called}" if is_plan else called


def _bars(part: str, waits: list[float], labels: list[str]) -> dict[str, Any]:
    name, color = PARTS.get(part, _TOTAL)
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": [float(f"{value * _NS:.4g}") for value in waits],
        "y": labels,
        "_nodes": color,
        "hovertemplate": "%{y}: %{x:.4s} ms for " + name + "<extra></extra>",
    }
