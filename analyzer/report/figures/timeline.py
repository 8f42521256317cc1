"""Figure of accesses over time: all threads with phases, and a lane for each thread."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...analyzed import Analysis
from ...timeline.timeline import Timeline
from ..units import MOST_LABELS, in_count, in_time, rounded

Figure = dict[str, Any]

MOST_POINTS = 1200
MOST_LANE_POINTS = 300
MOST_LANES = 256
UNIT = 1e6  # ns, or accesses, in what the axis counts


def _span(analysis: Analysis) -> str:
    """How wide a slice is, in words."""
    line = analysis.timeline
    if not line.in_accesses:
        return in_time(line.slice_ns)
    return f"{in_count(line.slice_ns)} access{'es' * (line.slice_ns != 1)}"


def timeline_figure(analysis: Analysis, names: list[str]) -> Figure:
    """Accesses a millisecond (or a million accesses) over time; below it one lane a thread."""
    line = analysis.timeline
    scale = float(max(1, analysis.period))
    counted = "misses" if analysis.load_source == "dram" else "accesses"
    unit = f"{counted if analysis.period else 'samples'} per {line.unit}"
    what = "misses of the last cache" if analysis.load_source == "dram" else "all accesses"
    times, amount = _binned(line.amount[:, None], MOST_POINTS)
    span = line.slice_ns / UNIT
    start = line.start_ns / UNIT
    lane_times, lanes = _binned(line.per_thread, MOST_LANE_POINTS)
    bundle = -(-lanes.shape[1] // MOST_LANES)
    lanes = np.add.reduceat(lanes, np.arange(0, lanes.shape[1], bundle), axis=1)
    shown = names[::bundle]
    phase_x, phase_y = _phase_steps(analysis, start, span, scale)
    about = (
        f"{what[0].upper()}{what[1:]}, in slices of {_span(analysis)}"
        + (", estimated as samples times period." if analysis.period else ", in samples.")
        + " The stepped line is the mean of each phase (CMLB, Algorithm 1). Dashed lines: the threads' "
        "rates or partners change. Below: each thread by itself."
    )
    step = -(-len(shown) // MOST_LABELS)
    return {
        "id": "timeline",
        "title": "Memory accesses over time",
        "about": about,
        "shape": "tall",
        "data": [
            {
                "type": "scatter",
                "mode": "lines",
                "name": "all threads",
                "x": rounded(start + times * span),
                "y": rounded(amount[:, 0] * scale / span),
                "_nodes": 0,
                "hovertemplate": f"%{{x:.4s}} {line.unit}: %{{y:.3s}} {unit}<extra>all threads</extra>",
            },
            {
                "type": "scatter",
                "mode": "lines",
                "name": "phase mean",
                "x": phase_x,
                "y": phase_y,
                "line": {"shape": "hv", "width": 2.5},
                "_nodes": 1,
                "hovertemplate": "phase mean %{y:.3s} " + unit + "<extra></extra>",
            },
            {
                "type": "heatmap",
                "x": rounded(start + lane_times * span),
                "y": list(range(len(shown))),
                "z": rounded(lanes.T * scale / span),
                "xaxis": "x",
                "yaxis": "y2",
                "zmin": 0,
                "zmax": float(lanes.max() * scale / span) or 1.0,
                "_ramp": "root",
                "_names": shown,
                "_unit": unit,
                "_time_unit": line.unit,
                "_lanes": True,
                "colorbar": {"title": {"text": unit}, "len": 0.55, "y": 0.27},
            },
        ],
        "layout": {
            "xaxis": {"title": {"text": _axis(line)}, "anchor": "y2"},
            "yaxis": {"domain": [0.64, 1.0], "title": {"text": unit}, "rangemode": "tozero"},
            "yaxis2": {
                "domain": [0.0, 0.55],
                "title": {"text": "thread"},
                "tickvals": list(range(0, len(shown), step)),
                "ticktext": shown[::step],
                "range": [len(shown) - 0.5, -0.5],
                "showgrid": False,
            },
            "shapes": [
                {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": at, "x1": at, "_thin": True}
                for at in (start + place * span for place in _borders(analysis))
            ],
            "showlegend": True,
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        },
    }


def _axis(line: Timeline) -> str:
    if line.in_accesses:
        return "emulated accesses since the start (millions)"
    return "time since the start (ms)"


def _binned(cells: NDArray[np.float64], most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(start of each bin in slices, (bins, columns) means) of at most `most` bins."""
    width = max(1, -(-len(cells) // most))
    starts = np.arange(0, len(cells), width)
    lengths = np.diff(np.append(starts, len(cells)))
    return starts.astype(np.float64), np.add.reduceat(cells, starts, axis=0) / lengths[:, None]


def _phase_steps(
    analysis: Analysis, start: float, span: float, scale: float
) -> tuple[list[float], list[float]]:
    x, y = [], []
    for phase in analysis.phases:
        x.append(start + phase.start * span)
        y.append(phase.weight * scale / span)
    if analysis.phases:
        x.append(start + analysis.phases[-1].end * span)
        y.append(y[-1])
    return x, y


def _borders(analysis: Analysis) -> list[int]:
    """Slices at which rates or partners change, each once."""
    return sorted({*analysis.changes, *analysis.partner_changes})
