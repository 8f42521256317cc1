"""The machine as nodes of cpus, with the threads on them: by a plan, or where they were recorded."""

from collections.abc import Mapping, Sequence

from numaplan.common import in_page
from numaplan.machine import format_list
from numaplan.profiler import Trace

from ..analyzed import Analysis
from .plan_view import PlanView
from .units import in_bytes

MOST_CPUS = 4096
MOST_NAMED = 3  # threads of a cpu
Nodes = Sequence[tuple[int, Sequence[int]]]  # id and cpus


def machine_section(analysis: Analysis, trace: Trace, view: PlanView | None) -> str:
    """The drawing; nothing where it is not known who was where, and for machines of too many cpus."""
    if view is not None:
        machine = view.content["machine"]["nodes"]
        nodes = [(int(node["id"]), [int(cpu) for cpu in node.get("cpus", ())]) for node in machine]
        cpus, about = _planned(view, analysis), "By the plan; darker is more load."
        placed = _bytes_by_node(view)
    elif trace.meta.get("backend") == "emulate":
        return ""  # an emulator's choice says nothing
    else:
        nodes = [(node.id, list(node.cpus)) for node in trace.machine.nodes]
        cpus, about = _recorded(trace), "Where most samples of each thread were taken; darker is more load."
        placed = {}
    if not cpus or sum(len(own) for _, own in nodes) > MOST_CPUS:
        return ""
    return (
        f'<section id="machine"><h2>The machine, and where its threads are</h2><p class="about">{about}</p>'
        f'<div class="machine">{_boxes(nodes, cpus, placed, analysis)}</div></section>'
    )


def _planned(view: PlanView, analysis: Analysis) -> dict[int, list[int]]:
    """Cpus of each thread of the trace that the plan has."""
    own = {
        (entry.get("process", "p0"), entry["path"]): [int(cpu) for cpu in entry["cpus"]]
        for entry in view.content["threads"]
        if entry.get("cpus")
    }
    keys = ((thread.process, thread.path) for thread in analysis.threads)
    return {number: own[key] for number, key in enumerate(keys) if key in own}


def _recorded(trace: Trace) -> dict[int, list[int]]:
    """The cpu of most samples of each thread."""
    number = {row.thread: at for at, row in enumerate(trace.thread_rows)}
    rows = trace.rows(
        "SELECT thread, cpu, count(*) AS n FROM samples WHERE thread >= 0 AND cpu >= 0 GROUP BY thread, cpu"
        " ORDER BY n, cpu DESC"
    )
    return {number[thread]: [int(cpu)] for thread, cpu, _ in rows if thread in number}


def _bytes_by_node(view: PlanView) -> dict[int, int]:
    placed: dict[int, int] = {}
    for entry in view.content.get("memory", ()):
        for run in entry["runs"]:
            placed[int(run["node"])] = placed.get(int(run["node"]), 0) + int(run["bytes"])
    return placed


def _boxes(
    nodes: Nodes, cpus: Mapping[int, Sequence[int]], placed: Mapping[int, int], analysis: Analysis
) -> str:
    """A box a node: a cell for each of its cpus, or for each of its threads where these have several."""
    total = float(analysis.loads.sum()) or 1.0
    boxes = []
    for node, own in nodes:
        here = set(own)
        home = [thread for thread, some in cpus.items() if here.issuperset(some)]
        guests = sum(1 for thread, some in cpus.items() if thread not in home and not here.isdisjoint(some))
        load = float(analysis.loads[home].sum()) / total
        facts = [f"{len(home)} thread{'s' * (len(home) != 1)}", f"{load:.0%} of the load"]
        facts += [f"{guests} more that may run here"] if guests else []
        facts += [f"{in_bytes(placed[node])} placed"] if placed.get(node) else []
        cells = [
            _cell(str(cpu), f"cpu {cpu}", [thread for thread in home if cpu in cpus[thread]], analysis)
            for cpu in own
        ]
        if any(len(cpus[thread]) > 1 for thread in home):
            cells = [_cell("", _cpus_told(cpus[thread], own), [thread], analysis) for thread in home]
        title = f"node {node}" + ("" if own else " (memory only)")
        boxes.append(
            f'<div class="node"><h3>{title}</h3><p class="about">{", ".join(facts)}</p>'
            f'<div class="cpus">{"".join(cells)}</div></div>'
        )
    return "".join(boxes)


def _cpus_told(cpus: Sequence[int], node: Sequence[int]) -> str:
    """Which of a node's cpus a thread may have."""
    if len(cpus) > 1 and set(cpus) == set(node):
        return "any cpu"
    return f"cpu{'s' * (len(cpus) > 1)} {format_list(cpus)}"


def _cell(label: str, where: str, threads: Sequence[int], analysis: Analysis) -> str:
    """label: what is seen of the cpu; where: which that is, or are."""
    load = float(analysis.loads[list(threads)].sum()) / (float(analysis.loads.max(initial=0.0)) or 1.0)
    listed = [analysis.names[thread] for thread in threads]
    shown = ", ".join(listed[:MOST_NAMED]) + (" …" if len(listed) > MOST_NAMED else "")
    told = f"{where}: thread {', '.join(listed)}" if listed else f"{where}: no thread"
    return (
        f'<span style="--load:{min(load, 1):.2f}" title="{in_page(told)}">'
        f"{f'<small>{label}</small>' if label else ''}{in_page(shown)}</span>"
    )
