"""`--watch`: look at the running program from outside, and say when something is not as planned."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from numaplan.common import tell
from numaplan.mapper import Plan, PlanRegion

from ..enforce.plan_table import PlanTable
from ..process.page_moves import page_nodes
from .applied import thread_name
from .logged_run import LoggedRegion, LoggedRun, read_logged_run

PAGES = 4096  # asked for in a region, evenly spread


@dataclass(frozen=True)
class PlacementCheck:
    """One check: planned threads alive, those on other cpus, planned pages touched and those elsewhere."""

    threads: int
    misplaced_threads: tuple[str, ...]
    pages: int
    misplaced: int

    def line(self) -> str:
        """What is said of it."""
        as_planned = self.threads - len(self.misplaced_threads)
        text = f"{as_planned}/{self.threads} living threads"
        if self.pages:
            text += f", {1000 * (self.pages - self.misplaced) // self.pages / 10:g} % of pages"
        text += " as planned"
        return (
            f"{text}; elsewhere: {', '.join(self.misplaced_threads[:3])}" if self.misplaced_threads else text
        )


class Watch:
    """Looks every `interval` seconds from `start` to `stop`; says what changed on stderr unless quiet."""

    def __init__(
        self, plan: Callable[[], Plan], table: PlanTable, workdir: Path, interval: float, quiet: bool
    ) -> None:
        self._plan, self._table, self._workdir = plan, table, workdir
        self._interval, self._quiet = interval, quiet
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._began = 0.0
        self._misplaced_threads: dict[str, float] = {}

    def start(self) -> None:
        """The program runs."""
        self._began = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """It has ended."""
        self._ended.set()
        if self._thread.ident:
            self._thread.join()

    def reasons(self) -> list[str]:
        """Threads that were elsewhere at some time while it ran."""
        return [
            f"thread {name} was not on its cpus {at:.3g} s after the start"
            for name, at in self._misplaced_threads.items()
        ]

    def _run(self) -> None:
        last = ""
        while not self._ended.wait(self._interval):
            check = check_placement(
                self._plan(), self._table, read_logged_run(self._workdir, self._table.processes)
            )
            for name in check.misplaced_threads:
                self._misplaced_threads.setdefault(name, time.monotonic() - self._began)
            line = check.line()
            if check.threads and line != last and not self._quiet:
                tell(f"nlaunch: watch: {line}")
            last = line


def check_placement(plan: Plan, table: PlanTable, logged: LoggedRun) -> PlacementCheck:
    """Threads and pages of the running program as the kernel has them now."""
    alive, misplaced_threads = 0, []
    for thread in plan.threads:
        actual = logged.threads.get((thread.process, thread.path))
        if actual is None or actual.ended:
            continue
        try:
            cpus = os.sched_getaffinity(actual.tid)
        except OSError:
            continue
        alive += 1
        if cpus != set(thread.cpus):
            misplaced_threads.append(thread_name(thread.process, thread.path))
    pages = misplaced = 0
    for row, region in enumerate(table.regions):
        if row in logged.regions:
            touched, elsewhere = _count_pages(region, logged.regions[row])
            pages, misplaced = pages + touched, misplaced + elsewhere
    return PlacementCheck(alive, tuple(misplaced_threads), pages, misplaced)


def _count_pages(region: PlanRegion, actual: LoggedRegion) -> tuple[int, int]:
    """(pages touched, pages on a node that the plan does not want them on)"""
    if not actual.address or actual.gone or region.policy == "next-touch":
        return 0, 0
    page = os.sysconf("SC_PAGE_SIZE")
    step = max(page, (actual.bytes // PAGES + page - 1) // page * page)
    offsets = range(0, actual.bytes, step)
    try:
        nodes = page_nodes(actual.pid, (actual.address + np.array(offsets, dtype=np.int64)) // page).tolist()
    except OSError:  # the process has ended
        return 0, 0
    anywhere, runs = {run.node for run in region.runs}, region.runs_of(actual.bytes)
    touched = elsewhere = 0
    for offset, node in zip(offsets, nodes, strict=False):
        if node < 0:
            continue
        touched += 1
        wanted = {run.node for run in runs if run.offset <= offset < run.offset + run.bytes}
        allowed = anywhere if region.policy == "interleave" else wanted
        elsewhere += bool(allowed) and node not in allowed
    return touched, elsewhere
