"""Cost and time of `best` on sparse matrices up to 16,384 threads, at every effort; drawn as an SVG file.

Grids, communities and power laws with shuffled ids, made sparse and kept so. Costs are relative to the best
that any effort found; METIS is beside them where it is installed. NUMAPLAN_BENCH_PLOT names the drawing,
NUMAPLAN_BENCH_SIZES the thread counts.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.common import write_document
from numaplan.machine import Machine
from numaplan.mapper.threads.cost import objective_value
from numaplan.mapper.threads.methods import METHODS
from numaplan.mapper.threads.problem import EFFORTS, Problem, new_problem

SIZES = (1024, 2048, 4096, 8192, 16384)
NODES = 16
COLOURS = {"fast": "#d95f02", "normal": "#1b9e77", "max": "#7570b3", "metis": "#999999"}

Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
Rng = np.random.Generator


def run() -> dict[str, Any]:
    """By pattern and N: the pairs that talk, and for each effort its cost ratio and processor seconds."""
    sizes = [int(size) for size in os.environ.get("NUMAPLAN_BENCH_SIZES", "").split(",") if size] or SIZES
    results = {
        name: {f"N={size}": _one(pattern, size) for size in sizes} for name, pattern in PATTERNS.items()
    }
    target = os.environ.get("NUMAPLAN_BENCH_PLOT")
    if target:
        write_document(target, drawing(results).encode())
    return results


def grid(n: int, _: Rng) -> Pairs:
    """Four neighbours on a square."""
    index = np.arange(n).reshape(int(n**0.5) if int(n**0.5) ** 2 == n else int((n // 2) ** 0.5), -1)
    first = np.concatenate([index[:, :-1].ravel(), index[:-1].ravel()])
    second = np.concatenate([index[:, 1:].ravel(), index[1:].ravel()])
    return first, second, np.ones(len(first))


def communities(n: int, rng: Rng) -> Pairs:
    """Groups of about a dozen who talk, and strangers."""
    first = np.repeat(np.arange(n), 8)
    second = np.where(
        rng.random(8 * n) < 0.85, first // 12 * 12 + rng.integers(0, 12, 8 * n), rng.integers(0, n, 8 * n)
    )
    return first, np.minimum(second, n - 1), rng.lognormal(0.0, 0.5, 8 * n)


def power_law(n: int, rng: Rng) -> Pairs:
    """Few threads do most of the talking."""
    popular = np.minimum((n * rng.random(6 * n) ** 2.5).astype(np.int64), n - 1)
    return rng.integers(0, n, 6 * n), popular, rng.lognormal(0.0, 1.0, 6 * n)


PATTERNS: dict[str, Callable[[int, Rng], Pairs]] = {
    "grid": grid,
    "communities": communities,
    "power law": power_law,
}


def _one(pattern: Callable[[int, Rng], Pairs], size: int) -> dict[str, Any]:
    problem = _problem(pattern, size)
    found: dict[str, tuple[float, float]] = {}
    for effort in EFFORTS:
        found[effort] = _measure("best", replace(problem, effort=effort))
    if METHODS["metis"].installed:
        found["metis"] = _measure("metis", problem)
    least = min(value for value, _ in found.values())
    pairs = len(problem.sparse.to) // 2 if problem.sparse else int(np.count_nonzero(problem.comm)) // 2
    rows = {name: {"ratio": value / least, "seconds": seconds} for name, (value, seconds) in found.items()}
    return {"pairs": pairs, **rows}


def _problem(pattern: Callable[[int, Rng], Pairs], size: int) -> Problem:
    from scipy import sparse

    rng = np.random.default_rng((7, size))
    first, second, weight = pattern(size, rng)
    order = rng.permutation(size)
    apart = first != second
    comm = sparse.coo_array((weight[apart], (order[first[apart]], order[second[apart]])), shape=(size, size))
    machine = Machine.load(f"{NODES}x{size // NODES}")
    return new_problem((comm + comm.T).tocsr(), None, machine, objective="remote")


def _measure(name: str, problem: Problem) -> tuple[float, float]:
    method = METHODS[name]
    start = process_time()
    places = method(problem)
    seconds = process_time() - start
    if np.bincount(places, minlength=problem.nodes).tolist() != problem.sizes.tolist():
        raise AssertionError(f"{name} broke the seats")
    return objective_value(problem, places), seconds


def drawing(results: dict[str, Any]) -> str:
    """Two rows of panels, a column a pattern: cost over the best found, and seconds, over N."""
    width, height = 300, 220
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * len(results)}" height="{2 * height + 24}"'
        ' font-family="sans-serif" font-size="11">',
        "<style>text{fill:#1f2937} @media (prefers-color-scheme: dark){text{fill:#e6edf5}}</style>",
    ]
    for column, (name, rows) in enumerate(results.items()):
        for line, (what, key) in enumerate((("cost over best found", "ratio"), ("seconds", "seconds"))):
            parts.append(f'<g transform="translate({column * width},{line * height})">')
            parts += panel(f"{name}: {what}", rows, key, width, height, COLOURS)
            parts.append("</g>")
    for number, (label, colour) in enumerate(COLOURS.items()):
        parts.append(
            f'<text x="{20 + 80 * number}" y="{2 * height + 16}" style="fill:{colour}">{label}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def panel(
    title: str, rows: dict[str, Any], key: str, width: int, height: int, colours: dict[str, str]
) -> list[str]:
    """Lines over the size in the rows' names, one a colour; seconds by their logarithm."""
    sizes = [int(label[2:]) for label in rows]
    labels = [label for label in colours if all(label in row for row in rows.values())]
    values = [[row[label][key] for row in rows.values()] for label in labels]
    low, high = (min(map(min, values)), max(map(max, values)))
    if key == "seconds":
        values, low, high = (
            [np.log10(line).tolist() for line in values],
            float(np.log10(low)),
            float(np.log10(high)),
        )
    x = [
        50 + (width - 70) * (np.log2(size / sizes[0]) / max(1.0, np.log2(sizes[-1] / sizes[0])))
        for size in sizes
    ]
    shown = [f"{10**edge:.2g}" if key == "seconds" else f"{edge:.3f}" for edge in (low, high)]
    out = [
        f'<text x="50" y="16">{title}</text>',
        f'<rect x="50" y="24" width="{width - 70}" height="{height - 50}" fill="none" stroke="#ccc"/>',
        f'<text x="4" y="{height - 28}">{shown[0]}</text><text x="4" y="34">{shown[1]}</text>',
        f'<text x="50" y="{height - 8}">{sizes[0]}</text>',
        f'<text x="{width - 60}" y="{height - 8}">{sizes[-1]}</text>',
    ]
    for label, line in zip(labels, values, strict=True):
        y = [height - 30 - (height - 62) * (value - low) / ((high - low) or 1.0) for value in line]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colours[label]}" stroke-width="2"/>')
    return out
