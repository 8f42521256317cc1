"""The plan file: node and cpus of each thread, node of each piece of memory, and what that should cost.

Written to be reviewed: stable key order, a line for each thread and region, no change without cause.
"""

import math
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from numaplan.common import (
    BAD_JSON,
    UsageError,
    facts_html,
    read_document,
    reviewable_json,
    schema_of,
    shell_line,
    write_document,
)
from numaplan.machine import Machine

from .parts import TODAY, PlanApp, PlanMachine, PlanRegion, PlanThread, Predicted

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

SCHEMA = "numaplan/plan/1"
THREAD_PATH = re.compile(r"0(\.[1-9][0-9]*)*")
RULED = ("heap", "mmap", "file")  # kinds of memory that rules are for: what a thread asks for
MOST_NAMES = 16  # of a node, in a notebook
PLAN_LIMIT = 64 << 20  # bytes; a plan for 100 GB of memory stays under 1 MB


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A placement for one program on one machine: the content of a plan.json.

    alone: why nothing is placed, as the kernel is expected to do as well; empty where something is. Where the
    options leave a part of the cpus, `threads` are then all of them, each on all of these cpus.
    """

    schema: str = SCHEMA
    app: PlanApp
    machine: PlanMachine
    method: str
    objective: str
    threads: tuple[PlanThread, ...]
    memory: tuple[PlanRegion, ...] = ()
    predicted: Predicted
    alone: str = ""
    provenance: dict[str, Any] = msgspec.field(default_factory=dict)

    def graph(self) -> "nx.Graph":
        """The placement as a networkx graph: who and what is on which node.

        Vertices: `node N` with `kind` node, `size` (its threads) and `bytes` (of regions placed there); a
        thread by process and path, such as `p0 0.3`, with `kind` thread, `thread` (its row in the matrix) and
        `load`; a region by its place in the plan, `region N`, with `kind` region, `name`, `policy` and
        `bytes`. Edges: thread to node; region to node with `bytes` there.
        """
        import networkx as nx

        graph = nx.Graph(method=self.method, objective=self.objective)
        for node in self.machine.nodes:
            graph.add_node(f"node {node.id}", kind="node", size=0, bytes=0)
        for thread in self.threads:
            name, home = f"{thread.process} {thread.path}", f"node {thread.node}"
            graph.add_node(name, kind="thread", thread=thread.thread, load=thread.load)
            graph.add_edge(name, home)
            graph.nodes[home]["size"] += 1
        for number, region in enumerate(self.memory):
            name, key = f"region {number}", region.region
            graph.add_node(name, kind="region", name=key.name, policy=region.policy, bytes=key.bytes)
            for run in region.runs:
                home = f"node {run.node}"
                before = graph.edges[name, home]["bytes"] if graph.has_edge(name, home) else 0
                graph.add_edge(name, home, bytes=before + run.bytes)
                graph.nodes[home]["bytes"] += run.bytes
        return graph

    def frame(self, name: str) -> "pd.DataFrame":
        """`threads`: one a row, with node, cpus and load; `memory`: a run of a region a row, with its node.

        Raises UsageError for another.
        """
        import pandas as pd

        if name == "threads":
            rows = [{**msgspec.to_builtins(one), "cpus": one.cpus} for one in self.threads]
            columns = ["process", "path", "thread", "node", "cpus", "load"]
            return pd.DataFrame(rows, columns=columns + ["pool"] * any("pool" in row for row in rows))
        if name == "memory":
            runs = [
                (
                    one.region.process,
                    one.region.kind,
                    one.region.name,
                    one.policy,
                    run.offset,
                    run.bytes,
                    run.node,
                )
                for one in self.memory
                for run in one.runs
            ]
            head = ["process", "kind", "name", "policy", "offset", "bytes", "node"]
            return pd.DataFrame(runs, columns=head)
        raise UsageError(f"a plan has no frame {name!r}", "choose from threads, memory")

    def _repr_html_(self) -> str:
        predicted = self.predicted
        facts = {
            "program": shell_line(self.app.argv),
            "machine": f"{self.machine.name or 'unnamed'}: {len(self.machine.nodes)} nodes",
            "method": f"{self.method}, objective {self.objective}",
            "placed": f"{len(self.threads):,} threads, {len(self.memory):,} regions",
            "communication between nodes": f"{predicted.remote_share:.1%}",
        }
        if predicted.local_share >= 0:
            today = predicted.today
            before = f" (today {today.local_share:.1%})" if today and today.local_share >= 0 else ""
            facts["local accesses"] = f"{predicted.local_share:.1%}{before}"
        for node in self.machine.nodes:
            own = [thread.path for thread in self.threads if thread.node == node.id]
            more = " …" if len(own) > MOST_NAMES else ""
            facts[f"node {node.id}"] = (", ".join(own[:MOST_NAMES]) or "no threads") + more
        return facts_html("Plan", facts, [self.alone] if self.alone else [])

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Plan":
        """The plan in a file; raises UsageError naming the file and the field that is wrong."""
        return Plan.from_json(read_document(path, "plan", PLAN_LIMIT), os.fspath(path))

    @staticmethod
    def from_json(data: bytes | str, where: str = "plan.json") -> "Plan":
        """The plan in a text; raises UsageError naming `where` and the field that is wrong."""
        try:
            _check_schema(data, where)
            plan = msgspec.json.decode(data, type=Plan)
            _check(plan)
        except msgspec.ValidationError as error:
            raise UsageError(f"{where}: {error}", "make the plan again with 'nmap plan'") from error
        except BAD_JSON as error:
            raise UsageError(f"{where}: not JSON: {error}", "give a plan that 'nmap plan' wrote") from error
        except UsageError as error:
            what = error.what if error.what.startswith(where) else f"{where}: {error.what}"
            raise UsageError(what, error.hint) from error
        return plan

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan file (by rename); raises UsageError when it cannot be written."""
        write_document(path, self.to_json())

    def to_json(self) -> bytes:
        """The plan file's text."""
        return reviewable_json(msgspec.to_builtins(self))


def _check_schema(data: bytes | str, where: str) -> None:
    found = schema_of(data)
    if found != SCHEMA:
        what = f"schema {found!r}" if found else "no 'schema', so not a plan"
        raise UsageError(f"{where}: {what}", _hint_for(found))


def _hint_for(schema: str) -> str:
    if schema.startswith("numaplan/job/"):
        return "a job's plan is for 'nlaunch --job', whose ranks take their parts"
    if schema.startswith("numaplan/") and not schema.startswith("numaplan/plan/"):
        return "give a plan that 'nmap plan' wrote"
    return f"this version reads {SCHEMA}"


def _check(plan: Plan) -> None:
    """Raise UsageError naming the thread or region that cannot be right, whatever the types of its fields."""
    machine = plan.machine.machine()
    _check_threads(plan.app, plan.threads, machine)
    nodes = set(machine.node_ids)
    for number, region in enumerate(plan.memory):
        _check_region(region, nodes, f"memory[{number}] ({region.region.kind} {region.region.name})")
    _check_predicted(plan.predicted, len(machine.cpu_nodes), len(machine.nodes))


def _check_threads(app: PlanApp, threads: Sequence[PlanThread], machine: Machine) -> None:
    seen: set[tuple[str, str]] = set()
    for number, thread in enumerate(threads):
        where = f"threads[{number}] ({thread.process} {thread.path})"
        if not THREAD_PATH.fullmatch(thread.path):
            raise UsageError(f"{where}: not a creation path", "paths look like 0, 0.3, 0.3.1")
        if (thread.process, thread.path) in seen:
            raise UsageError(f"{where}: listed twice", "keep one line per thread")
        seen.add((thread.process, thread.path))
        if thread.node not in machine.node_ids:
            raise UsageError(f"{where}: no node {thread.node} on the plan's machine", "correct its node")
        nodes = [machine.node_of_cpu.get(cpu) for cpu in thread.cpus]
        strays = [cpu for cpu, node in zip(thread.cpus, nodes, strict=True) if node != thread.node]
        if thread.pool is not UNSET and thread.node in nodes:
            strays = [cpu for cpu, node in zip(thread.cpus, nodes, strict=True) if node is None]
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
    _check_rule(region, where)
    end = 0
    for run in region.runs:
        if run.offset < end:
            raise UsageError(f"{where}: runs overlap or go back at offset {run.offset}", "order the runs")
        end = run.offset + run.bytes
        if end > region.region.bytes:
            raise UsageError(f"{where}: a run ends at {end}, past the region's end", "shorten the run")
        if run.node not in nodes:
            raise UsageError(f"{where}: no node {run.node} on the plan's machine", "correct its node")


def _check_rule(region: PlanRegion, where: str) -> None:
    if (region.rule is None) != (region.region.sequence is not None):
        raise UsageError(
            f"{where}: a rule has 'blocks' and no sequence, one region the opposite", "correct either"
        )
    if region.rule is None:
        return
    if region.region.kind not in RULED:
        raise UsageError(f"{where}: a rule for memory of this kind", f"rules are for {', '.join(RULED)}")
    least, most = region.rule.least, region.rule.most
    if region.region.bytes < least or (most is not None and region.region.bytes > most):
        raise UsageError(f"{where}: its own size is none of its sizes", "correct least and most")
    if not region.region.bytes:
        raise UsageError(f"{where}: a rule for blocks of no bytes", "correct its bytes")


def _check_predicted(predicted: Predicted, nodes: int, all_nodes: int) -> None:
    for name, metrics in {"predicted": predicted, **predicted.baselines}.items():
        if len(metrics.node_loads) not in (0, nodes):
            raise UsageError(
                f"{name}: {len(metrics.node_loads)} node loads for {nodes} nodes", "make the plan again"
            )
    if predicted.today and predicted.today.threads not in TODAY:
        raise UsageError(
            f"predicted: today: threads {predicted.today.threads!r}", f"one of {', '.join(TODAY)}"
        )
    shares = [predicted.node_shares, predicted.today.node_shares if predicted.today else ()]
    if any(len(part) not in (0, all_nodes) for part in shares):
        raise UsageError(
            f"predicted: not one node share for each of {all_nodes} nodes", "make the plan again"
        )
    if any(place >= len(predicted.touched) for group in predicted.touched for place, _ in group.others):
        raise UsageError("predicted: 'touched' names what it does not list", "make the plan again")
