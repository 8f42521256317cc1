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
    """Regions of at least a page whose pages were seen, the most touched first."""
    pages, size = observation.pages, kernel.PAGE_BYTES
    weight = np.bincount(observation.touches.page, observation.touches.accesses, pages.count)
    row_of = {pid: row for row, pid in enumerate(observation.processes.pid.tolist())}
    found: list[tuple[float, PlanRegion]] = []
    for one in identity.regions:
        if one.kind not in _PLACED or one.bytes < size or one.pid not in row_of:
            continue
        inside = pages.process == row_of[one.pid]
        inside &= (pages.number * size >= one.start_addr) & (pages.number * size < one.start_addr + one.bytes)
        inside &= pages.node >= 0
        if inside.any():
            nodes = observation.machine.node_ids[pages.node[inside]]
            runs = _runs(one, pages.number[inside] * size - one.start_addr, nodes)
            key = RegionKey(
                kind=one.kind, name=one.name, bytes=one.bytes, build_id=one.build_id,
                process=one.process, thread=one.thread_path, sequence=one.sequence,
            )  # fmt: skip
            found.append((float(weight[inside].sum()), PlanRegion(region=key, policy="bind", runs=runs)))
    found.sort(key=lambda item: -item[0])
    return tuple({item.region: item for _weight, item in found[:_MOST_REGIONS]}.values())


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
