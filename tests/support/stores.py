"""Small plans and stores of them."""

from pathlib import Path

import msgspec

from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanThread, Predicted
from numaplan.mapper.store.keys import ProgramKey, RunClass
from numaplan.mapper.store.places import LocalPlace
from numaplan.mapper.store.store import Found, PlanStore

MACHINE = Machine.load("2x2")
BUILD = "0123456789abcdef"


def small_plan(
    threads: int = 2, *, build: str = BUILD, process: str = "p0", machine: Machine = MACHINE
) -> Plan:
    """Threads in turn over the machine's cpus."""
    cpus = machine.cpus
    return Plan(
        app=PlanApp(argv=("./app", "3"), build_id=build, threads=threads, executable="app"),
        machine=PlanMachine.of(machine),
        method="best",
        objective="time",
        threads=tuple(
            PlanThread(
                path=f"0.{n}" if n else "0",
                thread=n,
                node=machine.node_of_cpu[cpus[n % len(cpus)]],
                cpus=(cpus[n % len(cpus)],),
                load=1.0,
                process=process,
            )
            for n in range(threads)
        ),
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )


def key_of(
    shape: str = "app #", *, ranks: int = 1, threads: int = 0, build: str = BUILD, name: str = ""
) -> ProgramKey:
    """The key of a run of the plans' program."""
    return ProgramKey(build, frozenset({BUILD}), RunClass(ranks, threads, shape, name))


def store_in(folder: Path) -> PlanStore:
    """A store in a folder that need not exist."""
    return PlanStore(LocalPlace(str(folder)))


def put(store: PlanStore, key: ProgramKey, plan: Plan | None = None, machine: Machine = MACHINE) -> Path:
    """Store a plan for a run; its file."""
    return Path(store.put(store.parts(key, machine), plan or small_plan(machine=machine)))


def found(store: PlanStore, key: ProgramKey, machine: Machine = MACHINE) -> Found:
    """A look-up in which every plan for this machine fits."""

    def fits(plan: Plan, _where: str) -> str:
        return "" if plan.machine.fingerprint == machine.fingerprint else "another machine"

    return store.find(key, machine, fits)


def renamed(plan: Plan, method: str) -> Plan:
    """The plan with a mark by which it is known again."""
    return msgspec.structs.replace(plan, method=method)
