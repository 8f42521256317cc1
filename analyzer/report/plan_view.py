"""A plan (the content of a plan.json) set against an analysis: threads' seats and pages' nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError, other_script, program_name
from numaplan.profiler import Trace

from ..analyzed import ThreadInfo
from ..memory.page_counts import PAGE, PageCounts
from ..memory.regions import RegionUse

Nodes = NDArray[np.int64]
ANOTHER_PROGRAM = "the plan is for another program"


@dataclass(frozen=True)
class PlanView:
    """A plan in the numbers of a trace.

    nodes: ids of the nodes with cpus; place, compact: (N,) position among them of each thread with the plan,
    and without one (threads in order fill node after node); homes: the plan's entry of each region index;
    content: the plan itself.
    """

    nodes: list[int]
    place: Nodes
    compact: Nodes
    homes: dict[int, dict[str, Any]]
    content: dict[str, Any]

    @property
    def order(self) -> Nodes:
        """(N,) threads ordered by node."""
        return np.argsort(self.place, kind="stable")

    @property
    def borders(self) -> list[int]:
        """Positions in `order` where the next node begins."""
        return (np.flatnonzero(np.diff(self.place[self.order])) + 1).tolist()

    @property
    def mismatch(self) -> list[str]:
        """What tells that the plan was made from another trace; empty when nothing does."""
        planned = len(self.content["threads"])
        if planned == len(self.place):
            return []
        return [f"the plan is for {planned} threads, this trace has {len(self.place)}: is it another run's?"]

    def home_text(self, region: int) -> str:
        """Where the plan puts a region, in words."""
        entry = self.homes.get(region)
        if entry is None:
            return "first touch"
        if entry.get("blocks"):
            return f"{self._nodes_text(entry)}, by the rule for its site"
        return self._nodes_text(entry)

    @staticmethod
    def _nodes_text(entry: Mapping[str, Any]) -> str:
        named = sorted({int(run["node"]) for run in entry["runs"]})
        listed = ", ".join(str(node) for node in named[:6]) + (" …" if len(named) > 6 else "")
        if entry["policy"] == "next-touch":
            return "next touch"
        if entry["policy"] == "interleave":
            return f"interleaved over {listed}"
        if len(named) == 1:
            return f"node {listed}"
        return f"nodes {listed} in {len(entry['runs'])} pieces"


def view_plan(
    content: dict[str, Any], threads: Sequence[ThreadInfo], regions: Sequence[RegionUse]
) -> PlanView:
    """Match a plan's threads and regions with those of a trace.

    content: a checked plan.json. Raises UsageError when the plan is for none of the trace's threads.
    """
    nodes = [int(node["id"]) for node in content["machine"]["nodes"] if node.get("cpus")]
    position = {node: index for index, node in enumerate(nodes)}
    planned = {
        (entry.get("process", "p0"), entry["path"]): position.get(int(entry["node"]), -1)
        for entry in content["threads"]
    }
    place = np.array([planned.get((thread.process, thread.path), -1) for thread in threads], np.int64)
    if not (place >= 0).any():
        raise UsageError("the plan names none of the trace's threads", "give the plan made from this trace")
    compact = _compact(len(threads), len(nodes))
    homes: dict[int, dict[str, Any]] = {}
    memory = content.get("memory", ())
    entries = {_key(entry["region"]): entry for entry in memory if not entry.get("blocks")}
    scaled = {
        (key[0], key[1], key[2], key[4]): entry for key, entry in entries.items() if entry.get("scales")
    }
    rules: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for entry in memory:
        if entry.get("blocks"):
            key = entry["region"]
            site = (key.get("process", "p0"), key["kind"], key["name"], key.get("thread", ""))
            rules.setdefault(site, []).append(entry)
    for use in regions:
        entry = entries.get((use.process, use.kind, use.name, use.bytes, use.sequence))
        entry = entry or scaled.get((use.process, use.kind, use.name, use.sequence))
        entry = _of_size(entry, use.bytes) if entry else _by_rule(use, rules)
        if entry is not None:
            homes[use.region] = entry
    # Threads that the plan leaves alone stay where they would be without it.
    return PlanView(nodes, np.where(place >= 0, place, compact), compact, homes, content)


def program_mismatch(content: Mapping[str, Any], trace: Trace) -> list[str]:
    """What tells that a plan was made for another program than a trace's; empty when nothing does.

    content: of a plan.json. Unknown build ids tell nothing, but scripts of an interpreter do.
    """
    app = content.get("app", {})
    argv = app.get("argv", ())
    planned, recorded = app.get("build_id", ""), trace.meta.get("build_id", "")
    one, other = program_name(argv), program_name(trace.argv)
    if other_script(argv, trace.argv, (app.get("executable", ""), trace.meta.get("executable", ""))):
        return [f"{ANOTHER_PROGRAM} ({one}) than the trace ({other})"]
    if not planned or not recorded or planned == recorded:
        return []
    if one and one == other:
        return [f"the plan is for another build of {one}: its memory layout may differ"]
    return [f"{ANOTHER_PROGRAM} ({one or planned[:12]}) than the trace ({other or recorded[:12]})"]


def _key(region: dict[str, Any]) -> tuple[str, str, str, int, int]:
    return (
        region.get("process", "p0"),
        region["kind"],
        region["name"],
        int(region["bytes"]),
        int(region.get("sequence", 0)),
    )


def _by_rule(
    use: RegionUse, rules: Mapping[tuple[str, ...], Sequence[dict[str, Any]]]
) -> dict[str, Any] | None:
    """The rule for the blocks that this is one of, its runs cut to this one's size."""
    for entry in rules.get((use.process, use.kind, use.name, use.thread), ()):
        least, most = (entry["blocks"].get(name) for name in ("least", "most"))
        if use.bytes >= (least or 0) and (most is None or use.bytes <= most):
            return _of_size(entry, use.bytes)
    return None


def _of_size(entry: dict[str, Any], size: int) -> dict[str, Any]:
    """An entry whose runs are cut to memory of this size."""
    planned = int(entry["region"]["bytes"])
    if size == planned or not planned:
        return entry
    scale = size / planned
    runs = [
        {"offset": run["offset"] * scale, "bytes": run["bytes"] * scale, "node": run["node"]}
        for run in entry["runs"]
    ]
    return {**entry, "runs": runs}


def _compact(threads: int, nodes: int) -> Nodes:
    sizes = np.full(nodes, threads // nodes)
    sizes[: threads % nodes] += 1
    return np.repeat(np.arange(nodes), sizes)


def first_touch_homes(pages: PageCounts, place: Nodes) -> Nodes:
    """For each entry of `pages` the node position of the thread that touched the page first."""
    assert pages.toucher is not None
    return place[pages.toucher]


def planned_homes(view: PlanView, pages: PageCounts) -> Nodes:
    """For each entry of `pages` the node position where the plan puts the page (first touch where it is
    silent; the node of whoever touches it most for next-touch)."""
    homes = first_touch_homes(pages, view.place)
    position = {node: index for index, node in enumerate(view.nodes)}
    for region, entry in view.homes.items():
        start, end = np.searchsorted(pages.region, [region, region + 1]).tolist()
        part = slice(start, end)
        runs = [run for run in entry["runs"] if int(run["node"]) in position]
        if entry["policy"] == "next-touch":
            homes[part] = _most_by(pages, part, view.place, len(view.nodes))
        elif runs and entry["policy"] == "interleave":
            named = np.array(sorted({position[int(run["node"])] for run in runs}))
            homes[part] = named[pages.page[part] % len(named)]
        elif runs:
            offsets = np.array([int(run["offset"]) for run in runs])
            ends = np.array([int(run["offset"]) + int(run["bytes"]) for run in runs])
            target = np.array([position[int(run["node"])] for run in runs])
            at = pages.page[part] * PAGE
            run = np.maximum(np.searchsorted(offsets, at, side="right") - 1, 0)
            inside = (at + PAGE > offsets[run]) & (at < ends[run])
            homes[part] = np.where(inside, target[run], homes[part])
    return homes


def node_accesses(pages: PageCounts, place: Nodes, homes: Nodes, nodes: int) -> NDArray[np.float64]:
    """(K, K) accesses, or samples of them, from threads on the row's node in pages on the column's."""
    pair = place[pages.thread] * nodes + homes
    cells = np.bincount(pair, weights=pages.accesses, minlength=nodes * nodes).astype(np.float64)
    return cells.reshape(nodes, nodes)


def _most_by(pages: PageCounts, part: slice, place: Nodes, nodes: int) -> Nodes:
    page, number = np.unique(pages.page[part], return_inverse=True)
    votes = np.zeros((len(page), nodes))
    np.add.at(votes, (number, place[pages.thread[part]]), pages.accesses[part])
    return np.asarray(votes.argmax(axis=1)[number], np.int64)
