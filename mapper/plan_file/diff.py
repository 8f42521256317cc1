"""What differs between two plans, in lines and as a document."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from .parts import PlanRegion, PlanThread
from .plan import Plan

SCHEMA = "numaplan/diff/1"
MOST = 50  # lines of one kind
_COSTS = (
    "remote_share",
    "cache_share",
    "hop_cost",
    "load_std",
    "local_share",
    "memory_share",
    "latency_ns",
    "serving_ns",
    "cost",
)


def differences(first: Plan, second: Plan) -> list[str]:
    """Lines that say what changes from the first plan to the second; none when they place all alike."""
    lines = []
    if first.machine.fingerprint != second.machine.fingerprint:
        lines.append(f"machine: {first.machine.name or 'unnamed'} -> {second.machine.name or 'unnamed'}")
    lines += _limited(_threads(first, second), "threads")
    lines += _limited(_memory(first, second), "regions")
    if bool(first.alone) != bool(second.alone):
        placing = ("nothing is placed", "threads and memory are placed")
        lines.append(" -> ".join(placing if first.alone else placing[::-1]))
    for name in _COSTS:
        before, after = getattr(first.predicted, name), getattr(second.predicted, name)
        if before != after:
            lines.append(f"{name}: {_known(name, before)} -> {_known(name, after)}")
    return lines


def diff_document(first: Plan, second: Plan) -> dict[str, Any]:
    """The same, all of it, as plain values (schema numaplan/diff/1): of each thread, region and cost that
    differs what it is in either plan, None where a plan has it not."""
    plans = first, second
    seats, costs = ([facts(plan) for plan in plans] for facts in (_seats, _costs))
    found = {
        "machine": _pair(first.machine.name, second.machine.name)
        if first.machine.fingerprint != second.machine.fingerprint
        else None,
        "alone": _pair(first.alone, second.alone) if bool(first.alone) != bool(second.alone) else None,
        "threads": [
            {"process": key[0], "path": key[1], **_pair(old, new)} for key, old, new in _changed(*seats)
        ],
        "memory": [
            {"region": one.title, **_pair(old and _shown(old), new and _shown(new))}
            for one, old, new in _regions(first, second)
            if not (old and new and _alike(old, new) and bool(old.scales) == bool(new.scales))
        ],
        "predicted": {name: _pair(old, new) for name, old, new in _changed(*costs)},
    }
    return {"schema": SCHEMA, "same": not any(found.values()), **found}


def _pair(first: Any, second: Any) -> dict[str, Any]:
    return {"first": first, "second": second}


def _seats(plan: Plan) -> dict[Any, Any]:
    return {
        (one.process, one.path): {
            **({"node": one.node} if one.pool is UNSET else {"pool": one.pool}),
            "cpus": list(one.cpus),
        }
        for one in plan.threads
    }


def _shown(region: PlanRegion) -> dict[str, Any]:
    return {
        "policy": region.policy,
        "nodes": sorted({run.node for run in region.runs}),
        "scales": bool(region.scales),
    }


def _costs(plan: Plan) -> dict[Any, Any]:
    values = {name: getattr(plan.predicted, name) for name in _COSTS}
    return {name: value if value >= 0 else None for name, value in values.items()}


def _changed(first: dict[Any, Any], second: dict[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """(key, value in the first, in the second) of those that differ; None: it has it not."""
    for key in dict.fromkeys([*first, *second]):
        old, new = first.get(key), second.get(key)
        if old != new:
            yield key, old, new


def _known(name: str, value: float) -> str:
    if value < 0:
        return "unknown"
    return f"{value / 1e6:.6g} ms" if name == "cost" else f"{value:.6g}"


def _limited(lines: list[str], what: str) -> list[str]:
    if len(lines) <= MOST:
        return lines
    return [*lines[:MOST], f"… and {len(lines) - MOST} more {what}"]


def _threads(first: Plan, second: Plan) -> list[str]:
    before = {(thread.process, thread.path): thread for thread in first.threads}
    after = {(thread.process, thread.path): thread for thread in second.threads}
    lines = []
    for key in sorted(before.keys() | after.keys(), key=_numbers_in_order):
        old, new = before.get(key), after.get(key)
        name = f"thread {key[0]} {key[1]}"
        if old is None or new is None:
            lines.append(f"{name}: only in the {'second' if old is None else 'first'} plan")
        elif old.pool != new.pool:
            lines.append(f"{name}: {_seat(old)} -> {_seat(new)}")
        elif old.node != new.node and old.pool is UNSET:
            lines.append(f"{name}: node {old.node} -> {new.node}")
        elif old.cpus != new.cpus:
            lines.append(f"{name}: cpus {list(old.cpus)} -> {list(new.cpus)}")
    return lines


def _numbers_in_order(key: tuple[str, str]) -> list[Any]:
    """What to sort processes and paths by: `0.10` after `0.8`."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", " ".join(key))]


def _seat(thread: PlanThread) -> str:
    return f"node {thread.node}" if thread.pool is UNSET else f"pool {thread.pool}"


def _memory(first: Plan, second: Plan) -> list[str]:
    lines = []
    for region, old, new in _regions(first, second):
        name = region.title if region.rule else f"{region.title} ({region.region.bytes} bytes)"
        if old is None or new is None:
            lines.append(f"{name}: only in the {'second' if old is None else 'first'} plan")
        elif not _alike(old, new):
            lines.append(f"{name}: {_nodes(old)} -> {_nodes(new)}")
        elif bool(old.scales) != bool(new.scales):
            lines.append(f"{name}: {_scaling(old)} -> {_scaling(new)}")
    return lines


def _regions(first: Plan, second: Plan) -> Iterator[tuple[PlanRegion, PlanRegion | None, PlanRegion | None]]:
    """What the plans have for the same memory, None: nothing; before them one of the two that is there."""
    before, after = ({_identity(region): region for region in plan.memory} for plan in (first, second))
    mine, others = _lone(before, after), _lone(after, before)
    of_other_sizes = {
        others[what]: mine[what]
        for what in mine.keys() & others.keys()
        if before[mine[what]].scales or after[others[what]].scales
    }
    after = {of_other_sizes.get(key, key): region for key, region in after.items()}
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        one = old or new
        assert one is not None
        yield one, old, new


def _identity(region: PlanRegion) -> Any:
    """What tells that entries of two plans are for the same memory: of rules not how large blocks were."""
    if region.rule is None:
        return region.region
    return replace(region.region, bytes=0), region.rule.least, region.rule.most


def _lone(regions: dict[Any, PlanRegion], others: dict[Any, PlanRegion]) -> dict[Any, Any]:
    """Identities that the other plan lacks, by what they are but for size, where that tells them apart."""
    found: dict[Any, list[Any]] = {}
    for key, region in regions.items():
        if key not in others and region.rule is None:
            found.setdefault(replace(region.region, bytes=0), []).append(key)
    return {what: keys[0] for what, keys in found.items() if len(keys) == 1}


def _alike(old: PlanRegion, new: PlanRegion) -> bool:
    """Whether policy and homes are the same: of rules and of other sizes as shares, in whole percents."""
    shares = bool(old.rule) or old.region.bytes != new.region.bytes
    return old.policy == new.policy and _homes(old, shares) == _homes(new, shares)


def _homes(region: PlanRegion, shares: bool) -> list[tuple[int, int, int]]:
    size = region.region.bytes / 100 if shares else 1
    return [(round(run.offset / size), round(run.bytes / size), run.node) for run in region.runs]


def _scaling(region: PlanRegion) -> str:
    return "scales with its size" if region.scales else "of its planned size"


def _nodes(region: PlanRegion) -> str:
    nodes = sorted({run.node for run in region.runs})
    return f"{region.policy} on {', '.join(map(str, nodes)) or 'no node'}"
