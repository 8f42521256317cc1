"""Machines, plans and comparisons drawn on a terminal."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET
from rich.columns import Columns
from rich.console import Group
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table

from numaplan.analyzer import in_bytes
from numaplan.common import make_console
from numaplan.machine import Machine, Node, format_list

from ...plan_file.parts import PlanThread
from ...plan_file.plan import Plan
from ...plan_file.summary import summary

if TYPE_CHECKING:
    from ...planning.judge.compare import Comparison

MOST_NODES = 16  # wider tables of distances are of no use on a terminal
MOST_REGIONS = 20
MOST_THREADS = 64  # of a node or pool
DIFFERENT = 0.02  # of all load
MOVED = (
    "the threads are not where these figures are for, but were moved since, by hand or by nlaunch:"
    " 'nmap check TRACE --baseline PLAN' judges them"
)


def show_machine(machine: Machine) -> None:
    """Nodes as boxes, what is odd, then the distances."""
    console = make_console()
    nodes = f"{len(machine.nodes)} node{'s' * (len(machine.nodes) != 1)}"
    console.print(machine.name or "machine", style="bold", end="")
    console.print(f": {nodes}, {len(machine.cpus)} cpus")
    console.print(Columns([_node_box(node) for node in machine.nodes]))
    for note in machine.notes:
        console.print(note, soft_wrap=True)
    if 1 < len(machine.nodes) <= MOST_NODES:
        table = Table(box=None)
        for name in ("distance", *map(str, machine.node_ids)):
            table.add_column(name, no_wrap=True, min_width=len(name))
        for node, row in zip(machine.node_ids, machine.distance_matrix.tolist(), strict=True):
            table.add_row(str(node), *(f"{value:g}" for value in row))
        if Measurement.get(console, console.options.update(max_width=10_000), table).maximum <= console.width:
            console.print(table)
        else:
            console.print("too many distances for this narrow terminal; --json has all", style="dim")


def _node_box(node: Node) -> Panel:
    lines = [f"cpus {format_list(node.cpus)}" if node.cpus else "no cpus"]
    if node.memory_bytes:
        lines.append(in_bytes(node.memory_bytes))
    return Panel("\n".join(lines), title=f"node {node.id}", expand=False)


def show_plan(plan: Plan) -> None:
    """The summary, threads by node as boxes, then the memory."""
    console = make_console()
    lines = [line for line in summary(plan) if not line.startswith("  node")]
    if _moved_since(plan):
        lines.append(MOVED)
    console.print("\n".join(lines), soft_wrap=True)
    total = sum(thread.load for thread in plan.threads)
    console.print(Columns([_threads_box(title, own, total) for title, own in _groups(plan)]))
    if plan.memory:
        table = Table(box=None, pad_edge=False)
        for name in ("memory", "bytes", "policy", "nodes", "accesses"):
            table.add_column(name, overflow="fold", no_wrap=name in ("bytes", "policy", "accesses"))
        for region in plan.memory[:MOST_REGIONS]:
            nodes = format_list({run.node for run in region.runs})
            size = f"{'≤ ' * bool(region.rule)}{in_bytes(region.region.bytes)}"
            share = f"{region.share:.1%}" if isinstance(region.share, float) else "–"
            policy = f"{region.policy}, scales" if region.scales else region.policy
            table.add_row(region.title, size, policy, nodes, share)
        if len(plan.memory) > MOST_REGIONS:
            table.add_row(f"… {len(plan.memory) - MOST_REGIONS} more")
        console.print(table)


def _moved_since(plan: Plan) -> bool:
    """Whether nodes have other threads than the predictions are of: by the loads, so those of pools, which
    move, are left out."""
    predicted, own = sum(plan.predicted.node_loads), sum(thread.load for thread in plan.threads)
    if not predicted or not own or any(thread.pool is not UNSET for thread in plan.threads):
        return False
    loads = dict.fromkeys((node.id for node in plan.machine.nodes if node.cpus), 0.0)
    for thread in plan.threads:
        loads[thread.node] += thread.load
    pairs = zip(loads.values(), plan.predicted.node_loads, strict=True)
    return any(abs(load / own - before / predicted) > DIFFERENT for load, before in pairs)


def _groups(plan: Plan) -> list[tuple[str, list[PlanThread]]]:
    """The threads of each node that are in no pool, then those of each pool, under their titles."""
    by_node: dict[int, list[PlanThread]] = {node.id: [] for node in plan.machine.nodes}
    by_pool: dict[int, list[PlanThread]] = {}
    for thread in plan.threads:
        if thread.pool is not UNSET:
            by_pool.setdefault(thread.pool, []).append(thread)
        elif thread.node in by_node:
            by_node[thread.node].append(thread)
    nodes = [
        (f"node {node.id}" if node.cpus else f"node {node.id} (memory only)", by_node[node.id])
        for node in plan.machine.nodes
    ]
    return [*nodes, *((f"pool {pool}", by_pool[pool]) for pool in sorted(by_pool))]


def _threads_box(title: str, threads: Sequence[PlanThread], total: float) -> Panel:
    if not threads:
        return Panel("no threads", title=title, expand=False)
    table = Table(box=None)
    for name in ("thread", "cpus", "load"):
        table.add_column(name, overflow="fold", no_wrap=name == "load")
    for thread in threads[:MOST_THREADS]:
        name = thread.path if thread.process == "p0" else f"{thread.process}:{thread.path}"
        share = f"{thread.load / total:.1%}" if total else "–"
        table.add_row(name, format_list(thread.cpus), share)
    if len(threads) > MOST_THREADS:
        return Panel(Group(table, f" … and {len(threads) - MOST_THREADS:,} more"), title=title, expand=False)
    return Panel(Group(table), title=title, expand=False)


COMPARED: dict[str, Callable[["Comparison"], str]] = {
    "method": lambda row: row.method,
    "remote": lambda row: f"{row.remote_comm:.5g}",
    "share": lambda row: f"{row.remote_share:.1%}",
    "cost ms": lambda row: f"{row.cost / 1e6:.4g}" if row.cost >= 0 else "–",
    "hop cost": lambda row: f"{row.hop_cost:.5g}",
    "load std": lambda row: _of_all_load(row, row.load_std),
    "of means": lambda row: _of_all_load(row, row.load_std_mean),
    "off": lambda row: f"{row.imbalance:.1%}",
    "ratio": lambda row: f"{row.ratio:.3f}" if row.ratio is not None else "∞",
    "bound": lambda row: f"{row.value / row.lower_bound:.3f}" if row.lower_bound > 0 else "–",
    "search ms": lambda row: f"{row.seconds * 1e3:.2f}",
}
ABOUT = {
    "cost ms": "expected waiting of all threads",
    "load std": "standard deviation of the nodes' shares of all load",
    "of means": "the same of the mean loads of their threads, as in CMLB",
    "off": "largest deviation of a node's load from its share",
    "ratio": "what the objective makes small over that of the best row within the tolerance",
    "bound": "the same over the lower bound",
    "search ms": "how long the method took",
}
# In this order on a narrow terminal.
DISPENSABLE = ("of means", "hop cost", "load std", "bound", "off", "search ms", "share")


def _of_all_load(row: "Comparison", value: float) -> str:
    """As `nmap plan` shows it: loads are of one unit in one objective and of another in the next."""
    total = sum(row.node_loads)
    return f"{value / total:.2%}" if total else "–"


def show_comparison(rows: "Sequence[Comparison]") -> None:
    """One table an objective; ratio is to the best row, `off` how far a node's load is from its share."""
    console = make_console()
    columns = {name: [cell(row) for row in rows] for name, cell in COMPARED.items()}
    if all(row.cost < 0 for row in rows):
        del columns["cost ms"]
    dropped = []
    for name in DISPENSABLE:
        if sum(max(map(len, [head, *cells])) + 1 for head, cells in columns.items()) > console.width + 1:
            del columns[name]
            dropped.append(name)
    for objective in dict.fromkeys(row.objective for row in rows):
        table = Table(title=f"objective {objective}", title_justify="left", box=None, pad_edge=False)
        table.padding = (0, 1, 0, 0)
        for name in columns:
            table.add_column(name, justify="left" if name == "method" else "right", no_wrap=True)
        for number, row in enumerate(rows):
            if row.objective == objective:
                table.add_row(*(cells[number] for cells in columns.values()))
        console.print(table)
    legend = [f"{name}: {ABOUT[name]}" for name in columns if name in ABOUT]
    console.print("; ".join(legend), style="dim")
    if dropped:
        console.print(
            f"left out because the terminal is narrow: {', '.join(dropped)}; --json has all", style="dim"
        )
