"""Plans of two nodes and few regions, for the plan table and for reports of what became of them."""

import msgspec

from numaplan.machine import Machine
from numaplan.mapper import (
    Blocks,
    Plan,
    PlanApp,
    PlanMachine,
    PlanRegion,
    PlanThread,
    Predicted,
    RegionKey,
    Run,
)

HEAP = RegionKey(kind="heap", name="app+0x12ab", bytes=1 << 20, thread="0.1", sequence=3)
STATIC = RegionKey(kind="static", name="app:table", bytes=8192, build_id="aabbccddeeff00112233")
STACK = RegionKey(kind="stack", name="0.1", bytes=8 << 20, thread="0.1")


def plan_of(*regions: tuple[RegionKey, str], threads: int = 2) -> Plan:
    """Threads on node 0 and 1 in turn; each region half on node 0 and half on node 1."""
    machine = Machine.load("2x2")
    return Plan(
        app=PlanApp(threads=threads),
        machine=PlanMachine.of(machine),
        method="best",
        objective="remote",
        threads=tuple(
            PlanThread(path="0" if n == 0 else f"0.{n}", thread=n, node=n % 2, cpus=(2 * (n % 2),), load=1.0)
            for n in range(threads)
        ),
        memory=tuple(
            PlanRegion(
                region=key,
                policy=policy,  # type: ignore[arg-type]
                runs=(
                    Run(offset=0, bytes=key.bytes // 2, node=0),
                    Run(offset=key.bytes // 2, bytes=key.bytes // 2, node=1),
                ),
            )
            for key, policy in regions
        ),
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )


def locate(module: str, symbol: str) -> tuple[int, str] | None:
    return (0x4000, "aabbccddeeff00112233") if (module, symbol) == ("app", "table") else None


def rule(key: RegionKey, least: int, most: int | None) -> PlanRegion:
    """A rule for blocks of these sizes: the first half on node 0, the rest on node 1."""
    runs = (
        Run(offset=0, bytes=key.bytes // 2, node=0),
        Run(offset=key.bytes // 2, bytes=key.bytes // 2, node=1),
    )
    blocks = Blocks(least=least, most=most, seen=3)
    key = msgspec.structs.replace(key, sequence=None)
    return PlanRegion(region=key, policy="bind", runs=runs, blocks=blocks)


def with_rules(plan: Plan, *rules: PlanRegion) -> Plan:
    return msgspec.structs.replace(plan, memory=(*rules, *plan.memory))
