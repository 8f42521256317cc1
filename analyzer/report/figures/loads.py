"""Figures of load: each thread's, and each node's before and with the plan."""

from typing import Any

import numpy as np

from ...analyzed import Analysis
from ..plan_view import PlanView
from ..units import MOST_LABELS, rounded

Figure = dict[str, Any]


def load_figures(analysis: Analysis, names: list[str], view: PlanView | None) -> list[Figure]:
    """Bars of the access load a thread and, with a plan, a node."""
    scale = float(max(1, analysis.period))
    unit = "accesses" if analysis.period else "samples"
    if analysis.load_source == "dram":
        unit = "misses of the last cache" if analysis.period else "sampled misses"
    figures = [_thread_bars(analysis, names, view, scale, unit)]
    if view is not None:
        figures.append(_node_bars(analysis, view, scale, unit))
    return figures


def _thread_bars(
    analysis: Analysis, names: list[str], view: PlanView | None, scale: float, unit: str
) -> Figure:
    order = view.order if view is not None else np.arange(len(names))
    loads = analysis.loads[order] * scale
    names = [names[index] for index in order.tolist()]
    step = -(-len(names) // MOST_LABELS)
    place = view.place[order].tolist() if view is not None else [0] * len(names)
    where = [f"node {view.nodes[index]}" for index in place] if view is not None else [""] * len(names)
    about = (
        "The access load vector: each phase counts by how busy it was (CMLB, Eq. 2-3), scaled to accesses."
    )
    if view is not None:
        about += " Threads are ordered by the plan's nodes, one colour each."
    return {
        "id": "loads",
        "title": "Load of each thread",
        "about": about,
        "shape": "wide",
        "data": [
            {
                "type": "bar",
                "x": list(range(len(names))),
                "y": rounded(loads),
                "customdata": [list(pair) for pair in zip(names, where, strict=True)],
                "_nodes": place,
                "hovertemplate": "thread %{customdata[0]} %{customdata[1]}: %{y:.3s} "
                + unit
                + "<extra></extra>",
            }
        ],
        "layout": {
            "xaxis": {
                "title": {"text": "thread"},
                "tickvals": list(range(0, len(names), step)),
                "ticktext": names[::step],
                "showgrid": False,
            },
            "yaxis": {"title": {"text": unit}, "rangemode": "tozero"},
            "bargap": 0.15 if len(names) <= 64 else 0,
            "shapes": _mean_line(float(loads.mean())),
        },
    }


def _node_bars(analysis: Analysis, view: PlanView, scale: float, unit: str) -> Figure:
    count = len(view.nodes)
    names = [f"node {node}" for node in view.nodes]
    bars = []
    for index, (caption, place) in enumerate((("compact", view.compact), ("plan", view.place))):
        sums = np.bincount(place, weights=analysis.loads * scale, minlength=count).astype(np.float64)
        bars.append(
            {
                "type": "bar",
                "name": caption,
                "x": names,
                "y": rounded(sums),
                "_nodes": [7, 0][index],
                "hovertemplate": "%{x}: %{y:.3s} " + unit + f"<extra>{caption}</extra>",
            }
        )
    return {
        "id": "node-loads",
        "title": "Load of each node, compact and with the plan",
        "about": "Compact fills node after node in the order of thread creation. The line is an even share.",
        "shape": "wide",
        "data": bars,
        "layout": {
            "barmode": "group",
            "xaxis": {"type": "category", "showgrid": False},
            "yaxis": {"title": {"text": unit}, "rangemode": "tozero"},
            "showlegend": True,
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
            "shapes": _mean_line(float(analysis.loads.sum()) * scale / count),
        },
    }


def _mean_line(value: float) -> list[dict[str, Any]]:
    return [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value, "_thin": True}]
