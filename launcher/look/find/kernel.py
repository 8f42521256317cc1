"""What the kernel does to memory meanwhile: moving pages to and fro, swapping; and devices far away."""

import os
from collections.abc import Iterator

from .finding import Finding
from .view import View
from .words import again, listed, named, percent, size

PAGE = os.sysconf("SC_PAGESIZE")
MOVED = 0.02  # of the memory looked at, each second
LEAST_MOVED = 4 << 20  # bytes a second
FAULT_SECONDS = 1.5e-6  # what a hint fault takes, about
SWAPPED = 0.05  # of a process's memory


def pages_wander(view: View) -> Iterator[Finding]:
    """NUMA balancing moves pages over and over: threads of several nodes share them, or threads wander."""
    moved = view.counted("numa_pages_migrated") * PAGE / view.seconds
    faults = view.counted("numa_hint_faults") / view.seconds
    memory = sum(work.bytes for work in view.with_memory)
    ours = [work for work in view.with_memory if len(work.nodes) > 1 or len(view.confined(work.threads)) > 1]
    if not ours or moved < max(LEAST_MOVED, MOVED * memory):
        return
    work = max(ours, key=lambda one: one.bytes)
    yield Finding(
        name="pages-wander",
        what=f"NUMA balancing moves {size(moved)} of pages a second, on the whole machine",
        evidence=(
            f"{faults:.0f} hint faults and {moved / PAGE:.0f} moved pages a second (/proc/vmstat)",
            f"the processes have {size(memory)}: {percent(moved / max(1, memory))} of it each second",
        ),
        cost=f"hint faults alone take about {percent(faults * FAULT_SECONDS)} of a cpu",
        measured=True,
        cure=(
            again(work, "nlaunch --online numaplan --"),
            "echo 0 > /proc/sys/kernel/numa_balancing",
        ),
        pids=tuple(one.process.pid for one in ours),
        weight=faults * FAULT_SECONDS + moved / 1e9,
    )


def swapped(view: View) -> Iterator[Finding]:
    """A process's memory is on disk although nodes that it does not use have room."""
    for work in view.works:
        process = work.process
        if not work.threads or process.swapped < max(LEAST_MOVED, SWAPPED * (work.bytes + process.swapped)):
            continue
        mems = set(process.threads[0].mems) or set(view.machine.node_ids)
        used = {policy for policy in work.by_policy("bind") if policy}
        room = {node: view.free(node) for node in view.machine.node_ids if view.free(node) > process.swapped}
        outside = sorted(set(room) - mems)
        if used and room:
            cure: tuple[str, ...] = (
                again(work, f"numactl --preferred={max(room, key=lambda one: room[one])}"),
            )
            why = f"its memory is bound ({', '.join(sorted(used))})"
        elif outside:
            from .cgroups import allow

            cure, why = (allow(process, "mems", mems | {outside[0]}),), f"it may only use {listed(mems)}"
        else:
            continue
        reads = view.counted("pswpin") / view.seconds
        yield Finding(
            name="swapped",
            what=f"{named(work)}: {size(process.swapped)} are swapped out, and {listed(room)} has room",
            evidence=(why, f"{reads:.0f} pages a second are read back from swap, on the whole machine"),
            cost="each access to a page that is swapped out takes as long as the disk",
            cure=cure,
            pids=(process.pid,),
            weight=process.swapped / (work.bytes + process.swapped),
        )


def device_away(view: View) -> Iterator[Finding]:
    """A process drives a GPU or a network adapter from another node than the device's."""
    for work in view.works:
        devices = work.process.devices
        nodes = {device.node for device in devices}
        if not work.threads or len(nodes) != 1 or len(view.machine.nodes) < 2:
            continue
        (node,) = nodes
        if node not in view.machine.node_ids or work.nodes.get(node, 0.0) > 0.5:
            continue
        if not view.cpus_of(node):
            continue
        yield Finding(
            name="device-away",
            what=f"{named(work)}: its {devices[0].path} is on {listed(nodes)}, its threads run on"
            f" {listed(work.nodes)}",
            evidence=tuple(f"{device.path} is on node {device.node}" for device in devices[:5]),
            cost="transfers to and from the device may cross between nodes",
            cure=(again(work, f"numactl --cpunodebind={node} --membind={node}"),),
            pids=(work.process.pid,),
            weight=0.2,
        )
