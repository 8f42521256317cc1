"""A square heat map of who has how much to do with whom."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..units import MOST_LABELS, rounded

Figure = dict[str, Any]

NOTHING = {
    "text": "none was seen",
    "showarrow": False,
    "xref": "x domain",
    "yref": "y domain",
    "x": 0.5,
    "y": 0.5,
}


def square_map(
    name: str,
    title: str,
    about: str,
    cells: NDArray[np.float64],
    names: Sequence[str],
    unit: str,
    labels: Sequence[str],
    axes: tuple[str, str],
    nothing: dict[str, Any],
) -> Figure:
    """cells: (N, N), rows from top to bottom; names: of each when pointed at; labels: of each beside the
    axes, as many as there is room for; axes: titles of the columns' and the rows'; nothing: said of zeros."""
    count = len(labels)
    ticks = range(0, count, -(-count // MOST_LABELS))
    axis = {
        "tickvals": list(ticks),
        "ticktext": [labels[at] for at in ticks],
        "range": [-0.5, count - 0.5],
        "constrain": "domain",
        "showgrid": False,
        "zeroline": False,
    }
    columns, rows = axes
    return {
        "id": name,
        "title": title,
        "about": about,
        "shape": "square",
        "data": [
            {
                "type": "heatmap",
                "z": rounded(cells),
                "x": list(range(count)),
                "y": list(range(count)),
                "zmin": 0,
                "zmax": float(cells.max()) or 1.0,
                "_ramp": "root",
                "_names": list(names),
                "_unit": unit,
                "showscale": bool(cells.any()),
                "colorbar": {"title": {"text": unit}},
            }
        ],
        "layout": {
            "xaxis": {**axis, "title": {"text": columns}},
            "yaxis": {
                **axis,
                "title": {"text": rows},
                "range": [count - 0.5, -0.5],
                "scaleanchor": "x",
                "constraintoward": "top",
            },
            "annotations": [] if cells.any() else [nothing],
        },
    }
