"""What must be true of a plan beyond the types of its fields."""

import math
import re
from collections.abc import Sequence

from numaplan.common import UsageError
from numaplan.machine import Machine

from .parts import PlanApp, PlanRegion, PlanThread, Predicted

THREAD_PATH = re.compile(r"0(\.[1-9][0-9]*)*")


def check_plan(
    app: PlanApp,
    machine: Machine,
    threads: Sequence[PlanThread],
    memory: Sequence[PlanRegion],
    predicted: Predicted,
) -> None:
    """Raise UsageError naming the thread or region of a plan's parts that cannot be right."""
    _check_threads(app, threads, machine)
    nodes = set(machine.node_ids)
    for number, region in enumerate(memory):
        _check_region(region, nodes, f"memory[{number}] ({region.region.kind} {region.region.name})")
    _check_predicted(predicted, len(machine.cpu_nodes), len(machine.nodes))


def _check_threads(app: PlanApp, threads: Sequence[PlanThread], machine: Machine) -> None:
    seen: set[tuple[str, str]] = set()
    for number, thread in enumerate(threads):
        where = f"threads[{number}] ({thread.process} {thread.path})"
        if not THREAD_PATH.fullmatch(thread.path):
            raise UsageError(f"{where}: not a creation path", "paths look like 0, 0.3, 0.3.1")
        if (thread.process, thread.path) in seen:
            raise UsageError(f"{where}: stands twice", "keep one line a thread")
        seen.add((thread.process, thread.path))
        if thread.node not in machine.node_ids:
            raise UsageError(f"{where}: no node {thread.node} on the plan's machine", "correct its node")
        strays = [cpu for cpu in thread.cpus if machine.node_of_cpu.get(cpu) != thread.node]
        if strays or not thread.cpus:
            what = f"cpu {strays[0]} is not on node {thread.node}" if strays else "no cpus"
            raise UsageError(f"{where}: {what}", "correct its cpus")
        if not math.isfinite(thread.load):
            raise UsageError(f"{where}: load {thread.load}", "correct its load")
    if app.threads < len(threads):
        raise UsageError(
            f"app.threads is {app.threads} with {len(threads)} threads listed",
            "correct app.threads",
        )


def _check_region(region: PlanRegion, nodes: set[int], where: str) -> None:
    end = 0
    for run in region.runs:
        if run.offset < end:
            raise UsageError(f"{where}: runs overlap or go back at offset {run.offset}", "order the runs")
        end = run.offset + run.bytes
        if end > region.region.bytes:
            raise UsageError(f"{where}: a run ends at {end}, past the region's end", "shorten the run")
        if run.node not in nodes:
            raise UsageError(f"{where}: no node {run.node} on the plan's machine", "correct its node")


def _check_predicted(predicted: Predicted, nodes: int, all_nodes: int) -> None:
    for name, metrics in {"predicted": predicted, **predicted.baselines}.items():
        if len(metrics.node_loads) not in (0, nodes):
            raise UsageError(
                f"{name}: {len(metrics.node_loads)} node loads for {nodes} nodes", "make the plan again"
            )
    shares = [predicted.node_shares, predicted.today.node_shares if predicted.today else ()]
    if any(len(part) not in (0, all_nodes) for part in shares):
        raise UsageError(
            f"predicted: not one node share for each of {all_nodes} nodes", "make the plan again"
        )
