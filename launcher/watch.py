"""`--watch`: look at the running program from outside, and say when something is not as planned."""

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from numaplan.launcher.compact import Compact
from numaplan.launcher.online.kernel import page_nodes
from numaplan.launcher.seen import Observed, SeenRegion
from numaplan.mapper import Plan, PlanRegion

PAGES = 4096  # looked at in a region, evenly spread


@dataclass(frozen=True)
class Look:
    """One look: planned threads alive, those on other cpus, planned pages touched and those elsewhere."""

    threads: int
    strayed: tuple[str, ...]
    pages: int
    misplaced: int

    def line(self) -> str:
        """What is said of it."""
        right = self.threads - len(self.strayed)
        text = f"{right}/{self.threads} living threads"
        if self.pages:
            text += f", {1000 * (self.pages - self.misplaced) // self.pages / 10:g} % of pages"
        text += " as planned"
        return f"{text}; elsewhere: {', '.join(self.strayed[:3])}" if self.strayed else text


class Watch:
    """Looks every `interval` seconds from `start` to `stop`; says what changed on stderr unless quiet."""

    def __init__(
        self, plan: Callable[[], Plan], form: Compact, workdir: Path, interval: float, quiet: bool
    ) -> None:
        self._plan, self._form, self._workdir = plan, form, workdir
        self._interval, self._quiet = interval, quiet
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._began = 0.0
        self._strayed: dict[str, float] = {}

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
            for name, at in self._strayed.items()
        ]

    def _run(self) -> None:
        last = ""
        while not self._ended.wait(self._interval):
            from numaplan.launcher.observed import read_observed

            found = look(self._plan(), self._form, read_observed(self._workdir))
            for name in found.strayed:
                self._strayed.setdefault(name, time.monotonic() - self._began)
            line = found.line()
            if found.threads and line != last and not self._quiet:
                print(f"nlaunch: watch: {line}", file=sys.stderr)
            last = line


def look(plan: Plan, form: Compact, observed: Observed) -> Look:
    """Threads and pages of the running program as the kernel has them now."""
    alive, strayed = 0, []
    for thread in plan.threads:
        seen = observed.threads.get((thread.process, thread.path))
        if seen is None or seen.ended:
            continue
        try:
            cpus = os.sched_getaffinity(seen.tid)
        except OSError:
            continue
        alive += 1
        if cpus != set(thread.cpus):
            strayed.append(thread.path if thread.process == "p0" else f"{thread.process}/{thread.path}")
    pages = misplaced = 0
    for row, region in enumerate(form.regions):
        if row in observed.regions:
            touched, elsewhere = _look_at(region, observed.regions[row])
            pages, misplaced = pages + touched, misplaced + elsewhere
    return Look(alive, tuple(strayed), pages, misplaced)


def _look_at(region: PlanRegion, seen: SeenRegion) -> tuple[int, int]:
    """(pages touched, pages on a node that the plan does not want them on)"""
    if not seen.address or region.policy == "next-touch":
        return 0, 0
    page = os.sysconf("SC_PAGE_SIZE")
    step = max(page, (seen.bytes // PAGES + page - 1) // page * page)
    offsets = range(0, seen.bytes, step)
    try:
        nodes = page_nodes(seen.pid, (seen.address + np.array(offsets, dtype=np.int64)) // page).tolist()
    except OSError:  # the process has ended
        return 0, 0
    anywhere = {run.node for run in region.runs}
    touched = elsewhere = 0
    for offset, node in zip(offsets, nodes, strict=False):
        if node < 0:
            continue
        touched += 1
        wanted = {run.node for run in region.runs if run.offset <= offset < run.offset + run.bytes}
        allowed = anywhere if region.policy == "interleave" else wanted
        elsewhere += bool(allowed) and node not in allowed
    return touched, elsewhere
