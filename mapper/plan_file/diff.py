"""What differs between two plans, in lines."""

from numaplan.profiler import RegionKey

from .parts import PlanRegion
from .plan import Plan

MOST = 50  # lines of one kind


def differences(first: Plan, second: Plan) -> list[str]:
    """Lines that say what changes from the first plan to the second; none when they place all alike."""
    lines = []
    if first.machine.fingerprint != second.machine.fingerprint:
        lines.append(f"machine: {first.machine.name or 'unnamed'} -> {second.machine.name or 'unnamed'}")
    lines += _limited(_threads(first, second), "threads")
    lines += _limited(_memory(first, second), "regions")
    for name in ("remote_share", "hop_cost", "load_std", "local_share", "latency_ns", "serving_ns"):
        before, after = getattr(first.predicted, name), getattr(second.predicted, name)
        if before != after:
            lines.append(f"{name}: {_known(before)} -> {_known(after)}")
    return lines


def _known(value: float) -> str:
    return "unknown" if value < 0 else f"{value:.6g}"


def _limited(lines: list[str], what: str) -> list[str]:
    if len(lines) <= MOST:
        return lines
    return [*lines[:MOST], f"… and {len(lines) - MOST} more {what}"]


def _threads(first: Plan, second: Plan) -> list[str]:
    before = {(thread.process, thread.path): thread for thread in first.threads}
    after = {(thread.process, thread.path): thread for thread in second.threads}
    lines = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        name = f"thread {key[0]} {key[1]}"
        if old is None or new is None:
            lines.append(f"{name}: only in the {'second' if old is None else 'first'} plan")
        elif old.node != new.node:
            lines.append(f"{name}: node {old.node} -> {new.node}")
        elif old.cpus != new.cpus:
            lines.append(f"{name}: cpus {list(old.cpus)} -> {list(new.cpus)}")
    return lines


def _memory(first: Plan, second: Plan) -> list[str]:
    def table(plan: Plan) -> dict[RegionKey, PlanRegion]:
        return {region.region: region for region in plan.memory}

    before, after = table(first), table(second)
    lines = []
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        name = f"{key.kind} {key.name} ({key.bytes} bytes)"
        if old is None or new is None:
            lines.append(f"{name}: only in the {'second' if old is None else 'first'} plan")
        elif old != new:
            lines.append(f"{name}: {_nodes(old)} -> {_nodes(new)}")
    return lines


def _nodes(region: PlanRegion) -> str:
    nodes = sorted({run.node for run in region.runs})
    return f"{region.policy} on {', '.join(map(str, nodes)) or 'no node'}"
