"""Views of made-up processes on made-up machines, for findings that a virtual machine cannot show."""

from collections.abc import Sequence
from typing import Any

import msgspec

from numaplan.launcher.look.find.view import View
from numaplan.launcher.look.read.model import (
    Memory,
    NodeState,
    Other,
    Part,
    Process,
    Sampled,
    Snapshot,
    System,
    Thread,
)
from numaplan.machine import Machine

SECOND = 1_000_000_000
MIB = 1 << 20
TICKS = 100  # a second


def thread(
    tid: int, cpu: int, *, cpus: Sequence[int] = (), ran: float = 1.0, waited: float = 0.0, **more: Any
) -> Thread:
    """A thread after the one second of a view; cpus: all of them by default."""
    values = {"name": f"worker-{tid}", "cpus": tuple(cpus), "mems": (), **more}
    return Thread(tid=tid, cpu=cpu, ran_ns=round(ran * SECOND), waited_ns=round(waited * SECOND), **values)


def process(
    pid: int, threads: Sequence[Thread], memory: dict[int, int] | None = None, **more: Any
) -> Process:
    """A process after that second; memory: MiB by node, of one kind and policy."""
    kind, policy = more.pop("kind", "anon"), more.pop("policy", "default")
    nodes = {node: count * MIB for node, count in (memory or {}).items()}
    parts = more.pop("parts", (Part(policy, kind, nodes),) if nodes else ())
    values = {"name": "app", "argv": ("./app", "1000"), **more}
    given = Memory(parts, more.get("libraries", ()), 2 * MIB)
    values.pop("libraries", None)
    return Process(time_ns=SECOND, pid=pid, threads=tuple(threads), memory=given, **values)


def view(
    machine: Machine | str,
    *processes: Process,
    free: dict[int, int] | None = None,
    balancing: int | None = 1,
    counters: dict[str, int] | None = None,
    others: tuple[Other, ...] = (),
    sampled: dict[int, Sampled] | None = None,
) -> View:
    """One second of these processes; free: MiB by node (1 GiB by default); a cpu idles where no thread is."""
    machine = Machine.load(machine) if isinstance(machine, str) else machine
    every = tuple(machine.cpus)
    whole = tuple(_everywhere(one, every) for one in processes)
    used = {one.cpu for each in whole for one in each.threads if one.ran_ns}
    cpus = {cpu: (TICKS, 0) if cpu in used else (0, TICKS) for cpu in every}
    nodes = {node: NodeState(2048 * MIB, (free or {}).get(node, 1024) * MIB) for node in machine.node_ids}
    system = System(cpus=cpus, counters=counters or {}, nodes=nodes, balancing=balancing, others=others)
    before = Snapshot(System(cpus=dict.fromkeys(every, (0, 0))), tuple(map(_before, whole)))
    return View(before, Snapshot(system, whole), machine, sampled)


def _everywhere(one: Process, cpus: tuple[int, ...]) -> Process:
    threads = tuple(msgspec.structs.replace(t, cpus=t.cpus or cpus) for t in one.threads)
    return msgspec.structs.replace(one, threads=threads)


def _before(one: Process) -> Process:
    threads = tuple(msgspec.structs.replace(t, ran_ns=0, waited_ns=0) for t in one.threads)
    return msgspec.structs.replace(one, time_ns=0, threads=threads, memory=None)
