"""`--save plan.json`: the placement that the loop arrived at, as a plan for the next run."""

import msgspec
import numpy as np

from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.mapper import (
    Floats,
    Ints,
    Observation,
    Plan,
    PlanApp,
    PlanMachine,
    PlanRegion,
    PlanThread,
    Predicted,
    RegionKey,
    Run,
    evaluate,
)
from numaplan.profiler import Identity, RegionRecord, ThreadRecord

from ..process import page_moves as kernel
from .bindings import Bindings

_PLACED = ("heap", "mmap", "static")
_MOST_REGIONS = 1000


def refined_plan(
    policy: str,
    argv: tuple[str, ...],
    machine: Machine,
    observation: Observation | None,
    identity: Identity,
    bindings: Bindings,
) -> Plan:
    """The plan; raises UsageError when too little was seen to make one."""
    tids = observation.threads.tid.tolist() if observation else []
    row_of = {tid: row for row, tid in enumerate(tids)}
    found = [(one, row_of[one.tid]) for one in identity.threads if one.tid in row_of]
    if observation is None or not found:
        raise UsageError("--save: no thread was seen long enough", "let the program run for a few intervals")
    rows = np.array([row for _thread_record, row in found], dtype=np.int64)
    nodes = observation.machine.node_ids[observation.threads.node[rows]]
    comm = shared_pages(observation)[np.ix_(rows, rows)]
    loads = observation.threads.accesses.sum(axis=1)[rows]
    first = identity.processes[0] if identity.processes else None
    return Plan(
        app=PlanApp(argv=argv, build_id=first.build_id if first else "", threads=len(found)),
        machine=PlanMachine.of(machine),
        method=f"online {policy}",
        objective="balanced",
        threads=tuple(
            _thread(one, number, int(nodes[number]), machine, float(loads[number]), bindings)
            for number, (one, _row) in enumerate(found)
        ),
        memory=_memory(identity, observation),
        predicted=Predicted(
            **msgspec.structs.asdict(evaluate(comm, loads, machine, nodes)),
            local_share=_local_share(observation),
        ),
        provenance={"options": {"online": policy}},
    )


def shared_pages(observation: Observation) -> Floats:
    """(T, T) how much each two threads touched the same pages: the lesser of their accesses, summed."""
    touches = observation.touches
    cells = touches.page * observation.threads.count + touches.thread
    keys, group = np.unique(cells, return_inverse=True)
    weight = np.bincount(group, touches.accesses, len(keys))
    page, thread = keys // max(1, observation.threads.count), keys % max(1, observation.threads.count)
    comm = np.zeros((observation.threads.count, observation.threads.count))
    for apart in range(1, len(keys)):  # pairs that stand so far apart: as many rounds as a page has users
        same = page[apart:] == page[:-apart]
        if not same.any():
            break
        lesser = np.minimum(weight[apart:], weight[:-apart])[same]
        np.add.at(comm, (thread[:-apart][same], thread[apart:][same]), lesser)
    return comm + comm.T


def _thread(
    one: ThreadRecord, number: int, node: int, machine: Machine, load: float, bindings: Bindings
) -> PlanThread:
    of_node = next(frozenset(item.cpus) for item in machine.nodes if item.id == node)
    cpus = (bindings.mask(one.tid) or of_node) & of_node
    return PlanThread(
        path=one.path,
        thread=number,
        node=node,
        cpus=tuple(sorted(cpus or of_node)),
        load=load,
        process=one.process,
    )


def _local_share(observation: Observation) -> float:
    accesses = observation.threads.accesses
    total = float(accesses.sum())
    local = float(accesses[np.arange(len(accesses)), observation.threads.node].sum())
    return local / total if total else -1.0


def _memory(identity: Identity, observation: Observation) -> tuple[PlanRegion, ...]:
    """Regions of at least a page whose pages were seen, the most touched first, then the oldest."""
    pages, touches, size = observation.pages, observation.touches, kernel.PAGE_BYTES
    row_of = {pid: row for row, pid in enumerate(observation.processes.pid.tolist())}
    last_s = _last_touches(observation)
    taken = np.zeros(pages.count, dtype=np.bool_)
    found: list[tuple[float, int, PlanRegion]] = []
    # Where regions overlap, the one that began last is meant.
    for one in sorted(_lasting(identity, observation), key=lambda one: -one.start_ns):
        if one.bytes < size or one.pid not in row_of:
            continue
        inside = ~taken & (pages.process == row_of[one.pid]) & (last_s * 1e9 >= one.start_ns)
        inside &= (pages.number * size >= one.start_addr) & (pages.number * size < one.start_addr + one.bytes)
        taken |= inside
        inside &= pages.node >= 0
        if inside.any() and one.kind in _PLACED:
            nodes = observation.machine.node_ids[pages.node[inside]]
            runs = _runs(one, pages.number[inside] * size - one.start_addr, nodes)
            key = RegionKey(
                kind=one.kind, name=one.name, bytes=one.bytes, build_id=one.build_id,
                process=one.process, thread=one.thread_path, sequence=one.sequence,
            )  # fmt: skip
            weight = float(touches.accesses[inside[touches.page]].sum())
            found.append((-weight, one.start_ns, PlanRegion(region=key, policy="bind", runs=runs)))
    found.sort(key=lambda item: item[:2])
    return tuple({item.region: item for *_, item in found[:_MOST_REGIONS]}.values())


def _lasting(identity: Identity, observation: Observation) -> list[RegionRecord]:
    """Regions that were there when the pages' nodes were, and are no temporaries.

    What had an address before was elsewhere, and of temporaries one interval shows too few to say more.
    """
    now, interval = observation.time_s * 1e9, observation.interval_s * 1e9
    return [
        one
        for one in identity.regions
        if one.start_ns <= now and (one.end_ns < 0 or one.end_ns >= max(now, one.start_ns + interval))
    ]


def _last_touches(observation: Observation) -> Floats:
    """(M,) when each page was last touched; infinity where that is not known."""
    last = np.full(observation.pages.count, -np.inf)
    np.maximum.at(last, observation.touches.page, observation.touches.last_s)
    return np.where(np.isneginf(last), np.inf, last)


def _runs(one: RegionRecord, offsets: Ints, nodes: Ints) -> tuple[Run, ...]:
    """Runs of one node from the first change on; pages that were not seen go with those before them."""
    order = np.argsort(offsets)
    offsets, nodes = np.maximum(offsets[order], 0), nodes[order]
    starts = np.flatnonzero(np.append(True, nodes[1:] != nodes[:-1]))
    begins = [0, *offsets[starts[1:]].tolist()]
    ends = [*begins[1:], one.bytes]
    return tuple(
        Run(offset=begin, bytes=end - begin, node=int(nodes[start]))
        for begin, end, start in zip(begins, ends, starts.tolist(), strict=True)
        if end > begin
    )
