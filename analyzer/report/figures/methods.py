"""Figure of what each mapping method would cost on this trace."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Figure = dict[str, Any]

UNITS = {"hop": (1.0, "communication times distance"), "time": (1e-6, "ms that threads wait")}
_WITHIN, _OFF = 0, 7  # places in the page's colours of nodes; the last is grey


@dataclass(frozen=True)
class MethodCost:
    """A method's placement: what the objective asks to be small, and whether node loads are even enough."""

    method: str
    value: float
    even: bool
    imbalance: float


def method_figure(costs: Sequence[MethodCost], objective: str) -> Figure:
    """One bar a method, the best at the top; those that do not balance in grey where that is asked for."""
    # Ties of the sum's last digits are ties: `best` then stands first.
    scale, unit = UNITS.get(objective, (1.0, "events between nodes"))
    ranked = sorted(costs, key=lambda cost: (not cost.even, _shown(cost), cost.method != "best"))
    names = [cost.method for cost in ranked]
    about = f"What every method's placement of these threads costs; objective: {objective}. Lower is better."
    if not all(cost.even for cost in ranked):
        about += " Grey: a node's load is further off its share than necessary."
    return {
        "id": "methods-compared",
        "title": "Every method on this trace",
        "about": about,
        "shape": "wide",
        "full": True,
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "x": [_shown(cost) * scale for cost in ranked],
                "y": names,
                "customdata": [f"{cost.imbalance:.1%}" for cost in ranked],
                "_nodes": [_WITHIN if cost.even else _OFF for cost in ranked],
                "hovertemplate": "%{y}: %{x:.4s}, load off by %{customdata}<extra></extra>",
            }
        ],
        "layout": {
            "xaxis": {"title": {"text": unit}, "rangemode": "tozero"},
            "yaxis": {"type": "category", "autorange": "reversed", "showgrid": False, "dtick": 1},
            "bargap": 0.2,
        },
    }


def _shown(cost: MethodCost) -> float:
    return float(f"{cost.value:.4g}")
