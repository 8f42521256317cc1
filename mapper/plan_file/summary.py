"""A plan in a few lines for people: what it saves, and which threads go where."""

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import UNSET

from numaplan.common import counted
from numaplan.machine import format_list

from .parts import TODAY, AtInput, PlanThread, Predicted
from .plan import Plan
from .pool_lines import pool_lines
from .scaling import scaling_lines, scaling_of

MOST_NODES = 16  # in one line
DIFFERENT = 0.02
ROUNDED = 0.005  # less than that is shown as 0 %
MUCH = 0.05  # of the accesses: worth a line
MOSTLY = 0.5
MANY = 5  # that follow one another: the first and the last stand for all
_NUMBERED = re.compile(
    r"(.*?)(\d+)(|:0)"
)  # thread by its number, or a process' only one by that of the process


def summary(plan: Plan, path: Path | None = None, larger: Sequence[AtInput] = ()) -> list[str]:
    """Lines for a terminal; larger: what the plan comes to with larger inputs, ascending."""
    predicted = plan.predicted
    scaling = scaling_of(plan)
    carried = scaling_lines(scaling) if scaling else []
    if plan.alone:
        lines = [f"leave it alone: {plan.alone}", *carried, *_costs(predicted), *_larger(plan, larger)]
        lines.append(f"the plan {kept_on(plan)}")
        return [*lines, f"plan written to {path}"] if path is not None else lines
    threads, nodes = counted(len(plan.threads), "thread"), counted(len(plan.machine.nodes), "node")
    head = f"{threads} on {nodes} ({plan.machine.name or 'machine'})"
    lines = [
        *carried,
        *_costs(predicted),
        *_larger(plan, larger),
        *_change(predicted, _placed(plan)),
        f"{head}, method {plan.method}, objective {plan.objective}",
        *_remote(plan),
        *_between_caches(predicted),
        f"load per node         {_loads(predicted)}",
    ]
    if plan.objective == "phased" and predicted.phase_imbalance >= 0:
        off = f"{predicted.phase_imbalance:.1%} beyond what cannot be avoided"
        lines.append(f"load in every phase   at worst {off}")
    lines += _by_node(plan)
    lines += _scaling_regions(plan)
    lines += _small_blocks(plan)
    lines += _identity(plan)
    lines += [f"  node {node}: threads {names}" for node, names in threads_by_node(plan)]
    lines += pool_lines(plan)
    if path is not None:
        lines.append(f"plan written to {path}")
    return lines


def kept_on(plan: Plan) -> str:
    """What a plan does that leaves the program alone."""
    if not plan.threads:
        return "places nothing"
    cpus = sorted({cpu for thread in plan.threads for cpu in thread.cpus})
    who = f"all {len(plan.threads)} threads" if len(plan.threads) > 1 else "its thread"
    return f"keeps {who} on cpus {format_list(cpus)}, and places nothing else"


def threads_by_node(plan: Plan) -> list[tuple[int, str]]:
    """Node id and the names of its threads that are of no pool, nodes with threads only, in order; of many
    whose numbers follow one another the first and the last."""
    nodes: dict[int, list[PlanThread]] = {}
    for thread in plan.threads:
        if thread.pool is UNSET:
            nodes.setdefault(thread.node, []).append(thread)
    several = len({thread.process for thread in plan.threads}) > 1
    return [
        (node, _in_runs([f"{t.process}:{t.path}" if several else t.path for t in nodes[node]]))
        for node in sorted(nodes)
    ]


def _in_runs(names: Sequence[str]) -> str:
    runs: list[list[str]] = []
    end: tuple[str, int, str] | None = None
    for name in names:
        match = _NUMBERED.fullmatch(name)
        own = (match[1], int(match[2]), match[3]) if match else None
        if end and own == (end[0], end[1] + 1, end[2]):
            runs[-1].append(name)
        else:
            runs.append([name])
        end = own
    return ", ".join(f"{run[0]} … {run[-1]}" if len(run) >= MANY else ", ".join(run) for run in runs)


def _placed(plan: Plan) -> str:
    """How many regions, and rules for how many blocks of the recording."""
    if not plan.memory:
        return "pages stay where they are touched first"
    rules = [region.rule for region in plan.memory if region.rule]
    single = len(plan.memory) - len(rules)
    parts = [f"{single} region{'s' * (single != 1)}"] if single or not rules else []
    if rules:
        seen = sum(rule.seen for rule in rules)
        parts.append(f"{len(rules)} rule{'s' * (len(rules) != 1)} (for {seen} blocks)")
    return f"{' and '.join(parts)} placed"


_KNOWN = {
    "shares": "each thread uses its part",
    "alike": "all of it is used alike",
    "sizes": "the same shares at two sizes",
}


def _scaling_regions(plan: Plan) -> list[str]:
    """How many regions hold for other sizes of them, and how that is known."""
    known = [region.scales.known for region in plan.memory if region.scales]
    if not known:
        return []
    why = ", ".join(f"{_KNOWN[word]} {known.count(word)}" for word in _KNOWN if word in known)
    single = sum(region.rule is None for region in plan.memory)
    return [f"scale with their size  {len(known)} of {single} region{'s' * (single != 1)} ({why})"]


def _costs(predicted: Predicted) -> list[str]:
    """What the threads are expected to wait, with the plan and without (objective `time`)."""
    if predicted.cost < 0 or predicted.today is None:
        return []
    before, parts = predicted.today.cost, predicted.cost_parts
    change = (
        f", {predicted.cost / before - 1:+.0%} against {_time(before)} without a plan" if before > 0 else ""
    )
    main = ", ".join(
        f"{_WAITED[name]} {_time(value)}"
        for name, value in parts.items()
        if value >= predicted.cost / 100 > 0
    )
    lines = [f"expected waiting      {_time(predicted.cost)}{change}" + (f" ({main})" if main else "")]
    if predicted.memory_share >= 0 and predicted.counted == "memory accesses":
        today = predicted.today.memory_share
        lines.append(
            f"of what reaches memory {predicted.memory_share:.1%} is local (without a plan {today:.1%})"
        )
    return lines


def _larger(plan: Plan, found: Sequence[AtInput]) -> list[str]:
    """Whether the plan is right for larger inputs; where not, from which on, and what each loses."""
    if not found:
        return []
    change = next((one for one in found if one.changes), None)
    if change is None:
        what = "leaving it alone is right" if plan.alone else "the plan is right"
        return [f"larger inputs         {what} up to {_size(found[-1])}"]
    saved = f"saves {1 - change.best_cost / change.cost:.0%} there"
    head = f"larger inputs         from {_size(change)} on"
    if change.best == "alone":
        return [f"{head} leaving it alone {saved}"]
    if plan.alone:
        return [f"{head} a plan {saved}: record with --for-footprint"]
    lost = change.best_here / plan.predicted.cost - 1 if plan.predicted.cost > 0 else 0.0
    here = f"{lost:.0%} more here" if lost >= ROUNDED else "no more here"
    return [f"{head} another plan {saved} and costs {here}: record with --for-footprint"]


def _size(found: AtInput) -> str:
    from numaplan.analyzer import in_bytes

    return f"{found.times} times as large" + (f" ({in_bytes(found.bytes)})" if found.bytes else "")


_WAITED = {
    "memory_ns": "memory",
    "queue_ns": "busy memory",
    "lines_ns": "lines of others",
    "cpu_ns": "cpus",
    "moves_ns": "pages moved",
}


def _time(ns: float) -> str:
    from numaplan.analyzer import in_time

    return in_time(ns, 3)


def _change(predicted: Predicted, placed: str) -> list[str]:
    """What a user asks for first: what the plan changes, in waiting where latencies are known."""
    lines = []
    today = predicted.today
    if predicted.latency_ns >= 0:
        against = _change_of(predicted.latency_ns, today.latency_ns if today else -1.0, ".0f")
        lines.append(f"memory access waits {predicted.latency_ns:.0f} ns{against}")
    if predicted.serving_ns >= 0:
        against = _change_of(predicted.serving_ns, today.serving_ns if today else -1.0, ".2f")
        lines.append(f"busiest memory needs {predicted.serving_ns:.2f} ns an access{against}")
    if predicted.local_share >= 0:
        against = f"   (today {today.local_share:.1%})" if today and today.local_share >= 0 else ""
        lines.append(f"local memory accesses {predicted.local_share:7.1%}{against}   {placed}")
    if today is not None:
        supposed = f"threads {TODAY[today.threads]}, pages where they are first touched"
        supposed += ", or AutoNUMA has them" if today.cost >= 0 else ""
        known = "what is local was counted as it was recorded; waiting with " if today.counted else ""
        lines.append(f"today: {known}{supposed}")
    elif predicted.local_share >= 0:
        lines.append("today's share is not known: the samples do not show who touches pages first")
    return lines


def _change_of(planned: float, today: float, digits: str) -> str:
    return f", {planned / today - 1:+.0%} against today's {today:{digits}} ns" if today > 0 else ""


def _identity(plan: Plan) -> list[str]:
    """A warning where runs were compared and threads did not keep their roles."""
    found = plan.provenance.get("identity")
    if not isinstance(found, dict) or found.get("stable") is not False:
        return []
    return ["threads do not keep their roles from run to run: this plan will not fit the next run"]


def _by_node(plan: Plan) -> list[str]:
    """The share of local accesses on each node, where nodes differ by more than can be read off the whole."""
    shares = plan.predicted.node_shares[:MOST_NODES]
    known = [share for share in shares if share >= 0]
    if not known or max(known) - min(known) < DIFFERENT:
        return []
    listed = " ".join(f"{share:.1%}" if share >= 0 else "–" for share in shares)
    return [f"local share by node   {listed}"]


def _small_blocks(plan: Plan) -> list[str]:
    """How small blocks of the heap, which no plan places, fare by first touch; where they matter."""
    share, local = plan.predicted.small_share, plan.predicted.small_local
    if share < MUCH or len(plan.machine.nodes) < 2:
        return []
    head = f"small blocks          {share:7.1%} of the accesses, {local:.0%} of these local by first touch"
    if local >= MOSTLY:
        return [f"{head}: bound threads fill and use their own"]
    return [f"{head}: other nodes use what one thread fills; let those who use small blocks fill them"]


def _remote(plan: Plan) -> list[str]:
    predicted = plan.predicted
    found = f"{predicted.remote_share:7.1%}{_against(predicted)}{_bound(plan)}"
    if not predicted.apart:
        return [f"remote communication  {found}"]
    return [
        "remote communication  not known: processes that were recorded apart exchange what nobody saw",
        f"within each of them   {found}",
    ]


def _against(predicted: Predicted) -> str:
    parts = [f"{name} {costs.remote_share:.1%}" for name, costs in predicted.baselines.items()]
    return f"   ({', '.join(parts)})" if parts else ""


def _bound(plan: Plan) -> str:
    """What no placement can go below, as a share (objectives that count communication, not distance)."""
    predicted = plan.predicted
    if predicted.lower_bound < 0 or predicted.remote_share <= 0 or plan.objective == "hop":
        return ""
    share = predicted.lower_bound / predicted.remote_comm * predicted.remote_share
    if share >= predicted.remote_share * (1 - 1e-9):
        return "   the optimum"
    return f"   lower bound {share:.1%}"


def _between_caches(predicted: Predicted) -> list[str]:
    """What of the communication is between last-level caches, where nodes have several."""
    if predicted.cache_share < 0:
        return []
    others = ", ".join(f"{name} {share:.1%}" for name, share in predicted.cache_baselines.items())
    return [f"between L3 caches     {predicted.cache_share:7.1%}   ({others})"]


def _loads(predicted: Predicted) -> str:
    """Each node's share, and how far the shares spread beside the baselines'."""
    total = sum(predicted.node_loads)
    if not total:
        return "none"
    shares = " ".join(f"{load / total:.1%}" for load in predicted.node_loads[:MOST_NODES])
    others = [f"{name} {costs.load_std / total:.1%}" for name, costs in predicted.baselines.items()]
    return f"{shares}   (deviation {predicted.load_std / total:.1%}; {', '.join(others)})"
