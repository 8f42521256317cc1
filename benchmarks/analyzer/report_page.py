"""How soon the charts of `nmap report` are there, of 512 threads, against a page of plotly's own.

That is what plotly makes of one of the charts alone, the communication of the threads. Chromium opens them in
turn, without a network or a GPU: in a browser that is open, and in one that has just been started for it.
The page of a plan begins with text, so it is opened where people look for a chart (`report.html#timeline`).
Times are by the wall clock, from the start of loading the file; medians.
"""

import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from numaplan.analyzer import analyze_trace
from numaplan.common import MachineLacksError
from numaplan.profiler import Trace
from tests.support.commands import succeed
from tests.support.traces import write_trace

from .browser import Browser

THREADS, SAMPLES, OWN = 512, 600_000, 65536
TURNS = 9
PLANNED, PEER = "report with a plan", "plotly"
FURTHER = ("communication", "timeline", "node-loads")  # further down


def run() -> dict[str, Any]:
    """Of each page its size, and the seconds until all charts in the window and until all of it is drawn."""
    program = shutil.which("chromium")
    if program is None:
        raise MachineLacksError("chromium is missing", "apt-get install chromium")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace = _trace(folder / "trace.db")
        planned = _report_of_plan(folder, trace)
        files = {"report": _report(folder, trace), PLANNED: planned, PEER: _peer(folder, trace)}
        pages = {page: path.as_uri() for page, path in files.items()}
        pages[PLANNED] += "#expected-cost"
        pages |= {f"{PLANNED}, at #{chart}": f"{planned.as_uri()}#{chart}" for chart in FURTHER}
        times: dict[tuple[str, str], list[tuple[float, float]]] = {}
        with Browser(program) as browser:
            for page in pages.values():
                browser.drawn(page)
            for _ in range(TURNS):
                for page, address in pages.items():
                    times.setdefault((page, "open browser"), []).append(browser.drawn(address))
        for _ in range(TURNS):
            for page, address in pages.items():
                with Browser(program) as browser:
                    times.setdefault((page, "new browser"), []).append(browser.drawn(address))
        sizes = {page: path.stat().st_size / 1e6 for page, path in files.items()}
    return {
        "mb": sizes,
        **{
            which: {page: _summary(times[page, which]) for page in pages}
            | {"ratio": _all(times[PLANNED, which]) / _all(times[PEER, which])}
            for which in ("open browser", "new browser")
        },
    }


def _summary(times: list[tuple[float, float]]) -> dict[str, float]:
    return {
        "in_window_s": median(shown for shown, _ in times),
        "all_s": _all(times),
        "slowest_s": max(last for _, last in times),
    }


def _all(times: list[tuple[float, float]]) -> float:
    return median(last for _, last in times)


def _trace(path: Path) -> Path:
    """Each thread uses memory of its own; in every other quarter of the run its neighbour's instead."""
    rng = np.random.default_rng(1)
    time, thread = np.sort(rng.integers(0, 10**9, SAMPLES)), rng.integers(0, THREADS, SAMPLES)
    region = (thread + (time // (10**9 // 4)) % 2) % THREADS
    samples = {
        "time_ns": time,
        "thread": thread,
        "addr": (1 << 30) + region * OWN + rng.integers(0, OWN // 64, SAMPLES) * 64,
        "region": region,
        "is_write": rng.random(SAMPLES) < 0.3,
        "level": rng.choice([1, 2, 3, 4, 5], SAMPLES),
    }
    names = ["0", *(f"0.{number}" for number in range(1, THREADS))]
    threads = [(number, "p0", name, number + 1, 1, "app", 0, -1) for number, name in enumerate(names)]
    regions = [
        (number, "p0", "heap", f"app+{number:#x}", "", (1 << 30) + number * OWN, OWN, number, number, 0, -1)
        for number in range(THREADS)
    ]
    write_trace(path, samples, threads, regions, {"period": 1000, "duration_ns": 10**9})
    return path


def _report(folder: Path, trace: Path) -> Path:
    page = folder / "report.html"
    succeed("nmap", "report", trace, "-o", page)
    return page


def _report_of_plan(folder: Path, trace: Path) -> Path:
    plan, page = folder / "plan.json", folder / "planned.html"
    succeed("nmap", "plan", trace, "--machine", "4x4", "-o", plan)
    succeed("nmap", "report", trace, "--plan", plan, "-o", page)
    return page


def _peer(folder: Path, trace: Path) -> Path:
    import plotly.graph_objects as go

    page = folder / "plotly.html"
    with Trace.open(trace) as opened:
        comm = analyze_trace(opened).comm
    go.Figure(go.Heatmap(z=comm)).write_html(page, include_plotlyjs=True)
    return page
