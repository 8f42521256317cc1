"""Figures of who communicates with whom: thread by thread, and node by node."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..plan_view import PlanView
from ..units import MOST_LABELS, in_count, rounded
from .square_map import NOTHING, Figure, square_map

Matrix = NDArray[np.float64]

MOST_CELLS = 384  # threads shown one by one; beyond, neighbours are merged
MOST_ERRORS = 128  # threads up to which the page holds the error of each pair
MOST_WRITTEN = 4  # nodes up to which the numbers stand in the cells


def communication_figures(
    comm: Matrix, errors: Matrix, names: list[str], view: PlanView | None, *, counted: bool
) -> list[Figure]:
    """Heat maps in thread order and, with a plan, in the order of its nodes.

    errors: standard ones; counted: whether all events were, so that there are none.
    """
    seen = (
        "All events were counted: a thread touched a cache line that another one had written since."
        if counted
        else "Events seen in the samples: a thread touched memory that another one had written."
    )
    about = f"{seen} Colour grows with the square root, so that weak pairs stay visible."
    figures = [_heat_map("communication", "Communication between threads", about, comm, names, [])]
    if len(comm) <= MOST_ERRORS and not counted:
        figures[0]["about"] += " Point at a cell to see the standard error."
        figures[0]["data"][0]["_errors"] = rounded(errors)
    if view is not None:
        order = view.order
        ordered = [names[index] for index in order.tolist()]
        title = "The same, threads ordered by the plan's nodes"
        about = "Lines separate nodes. What is inside the squares on the diagonal stays on one node."
        figure = _heat_map(
            "communication-plan", title, about, comm[np.ix_(order, order)], ordered, view.borders
        )
        _name_nodes(figure, view)
        figures.append(figure)
    return figures


def _name_nodes(figure: Figure, view: PlanView) -> None:
    """Write each node beside its first thread; other threads that would touch it lose their label."""
    shown = figure["data"][0]["x"]
    bundle = -(-len(view.place) // len(shown))
    starts = [0, *view.borders]
    if len(starts) > MOST_LABELS:
        return
    axis = figure["layout"]["yaxis"]
    heads = {
        start // bundle: f"<b>node {view.nodes[view.place[view.order[start]]]}</b> {text}"
        for start in starts
        for text in [figure["data"][0]["text"][start // bundle]]
    }
    apart = len(shown) / MOST_LABELS
    labels = dict(zip(axis["tickvals"], axis["ticktext"], strict=True))
    kept = {at: text for at, text in labels.items() if all(abs(at - head) >= apart for head in heads)}
    ticks = sorted((kept | heads).items())
    figure["layout"]["yaxis"] = axis | {
        "tickvals": [at for at, _ in ticks],
        "ticktext": [text for _, text in ticks],
    }


def _heat_map(
    name: str, title: str, about: str, comm: Matrix, names: list[str], borders: list[int]
) -> Figure:
    count = len(comm)
    bundle = -(-count // MOST_CELLS)
    starts = np.arange(0, count, bundle)
    cells = np.add.reduceat(np.add.reduceat(comm, starts, axis=0), starts, axis=1)
    if bundle > 1:
        about += f" One cell is {bundle} by {bundle} threads."
    shown = [names[start] for start in starts.tolist()]
    figure = square_map(name, title, about, cells, shown, "events", shown, ("thread", "thread"), NOTHING)
    figure["data"][0]["text"] = shown
    lines = []
    for border in borders:
        at = border / bundle - 0.5
        lines.append({"type": "line", "x0": at, "x1": at, "y0": -0.5, "y1": len(shown) - 0.5})
        lines.append({"type": "line", "y0": at, "y1": at, "x0": -0.5, "x1": len(shown) - 0.5})
    figure["layout"]["shapes"] = lines
    return figure


def node_figure(
    name: str, title: str, about: str, pair: dict[str, Matrix], nodes: list[int], unit: str
) -> Figure:
    """Two node by node matrices side by side on one scale; pair: the caption of each and its values."""
    most = max(float(matrix.max(initial=0.0)) for matrix in pair.values()) or 1.0
    names = [f"node {node}" for node in nodes]
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": []}
    for index, (caption, matrix) in enumerate(pair.items()):
        tag = "" if index == 0 else str(index + 1)
        low, high = (0.0, 0.44) if index == 0 else (0.56, 1.0)
        trace: dict[str, Any] = {
            "type": "heatmap",
            "z": rounded(matrix),
            "x": [str(node) for node in nodes],
            "y": names,
            "zmin": 0,
            "zmax": most,
            "xaxis": f"x{tag}",
            "yaxis": f"y{tag}",
            "_ramp": "linear",
            "_names": names,
            "_unit": unit,
            "showscale": index == 0,
            "colorbar": {"title": {"text": unit}},
        }
        if len(nodes) <= MOST_WRITTEN:
            trace["_written"] = [
                [in_count(value).replace(" ", "") for value in row] for row in matrix.tolist()
            ]
        data.append(trace)
        kind = {"type": "category", "showgrid": False}
        layout[f"xaxis{tag}"] = {**kind, "domain": [low, high], "title": {"text": f"to node, {caption}"}}
        layout[f"yaxis{tag}"] = {**kind, "autorange": "reversed", "anchor": f"x{tag}"}
    layout["yaxis2"]["showticklabels"] = False
    return {"id": name, "title": title, "about": about, "shape": "wide", "data": data, "layout": layout}
