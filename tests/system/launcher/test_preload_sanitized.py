"""The preload library as a whole under sanitizers: threads, blocks, next-touch and forks all at once."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from numaplan.launcher.enforce.plan_table import encode
from numaplan.launcher.verify.logged_run import read_logged_run
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
from numaplan.profiler.identity.environment import prepare
from tests.support.programs import PROGRAMS, REPOSITORY, sanitized

pytestmark = pytest.mark.system
BLOCK = 256 * 1024
THREADS, ROUNDS, MANY = 32, 3, 4000
POLICIES = ("bind", "next-touch", "interleave", "preferred")
PARTS = ("plan_table", "next_touch", "enforce")
SANITIZERS = ("thread", "address,undefined")
WRAPPED = ("regions.c", "shared.c")  # the one stands before malloc, as sanitizers do, and the other needs it


def built(sanitizer: str) -> Path:
    """The library and the program that drives it, as one program."""
    native = REPOSITORY / "launcher" / "native"
    folders = [REPOSITORY / "profiler" / "native" / "preload", *(native / part for part in PARTS)]
    sources = [path for part in folders for path in sorted(part.glob("*.c")) if path.name not in WRAPPED]
    includes = (f"-I{part}" for part in (*folders, native / "include"))
    flags = ("-std=gnu11", *includes, "-fno-sanitize=null", "-rdynamic", "-lpthread", "-ldl")
    return sanitized(PROGRAMS / "launcher/whole.c", *sources, sanitizer=sanitizer, flags=flags)


def block(name: str, process: str, thread: str, sequence: int, node: int) -> PlanRegion:
    """Half of it in each of two runs: where policies differ they have something to do."""
    half = BLOCK // 2
    key = RegionKey(kind="heap", name=name, bytes=BLOCK, process=process, thread=thread, sequence=sequence)
    runs = (Run(offset=0, bytes=half, node=node), Run(offset=half, bytes=half, node=node))
    return PlanRegion(region=key, policy=POLICIES[sequence % len(POLICIES)], runs=runs)  # type: ignore[arg-type]


def plan_of(name: str) -> Plan:
    """Two blocks and a rule for each of 0.2, …, thousands of blocks for 0.1, one for each of 20 children."""
    machine = Machine.load("local")
    cpus, node = machine.cpus, machine.cpu_nodes[0].id
    paths = ["0", *(f"0.{k}" for k in range(1, THREADS * ROUNDS + 1))]
    threads = tuple(
        PlanThread(path=path, thread=k, node=node, cpus=(cpus[k % len(cpus)],), load=1.0)
        for k, path in enumerate(paths)
    )
    memory = [block(name, "p0", path, sequence, node) for path in paths[2:] for sequence in (1, 2)]
    rules = [block(name, "p0", path, 3, node) for path in paths[2:]]
    memory += [
        replace(rule, region=replace(rule.region, sequence=None), policy="bind", blocks=Blocks())
        for rule in rules
    ]
    memory += [block(name, "p0", "0.1", sequence, node) for sequence in range(1, MANY)]
    memory += [block(name, f"p0.{child}", "0", 1, node) for child in range(1, 21)]
    return Plan(
        app=PlanApp(threads=len(threads)),
        machine=PlanMachine.of(machine),
        method="best",
        objective="remote",
        threads=threads,
        memory=tuple(memory),
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )


def run(program: Path, workdir: Path, *words: str) -> str:
    """What it printed, with the plan in force."""
    # The thread sanitizer cannot map its shadow under some address space layouts.
    start = [shutil.which("setarch") or "setarch", "-R", str(program)]
    site = subprocess.run([*start, "site"], capture_output=True, text=True, check=True).stdout.strip()
    plan = plan_of(f"{program.name}+0x{site}")
    table = workdir / "plan.bin"
    table.write_bytes(encode(plan, {"": Machine.load("local").cpus}, lambda _module, _symbol: None).data)
    environment = {**prepare(workdir, os.environ), "NUMAPLAN_PLAN": str(table), "NUMAPLAN_NEXT_TOUCH": "user"}
    del environment["LD_PRELOAD"]  # it is compiled in
    # Memory that is mapped past the sanitizer: of who used its addresses before, it knows more than is true.
    known = workdir / "suppressions"
    known.write_text("race:make_states\n")
    environment["TSAN_OPTIONS"] = f"suppressions={known}"
    done = subprocess.run(
        [*start, *words], env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_threads_and_memory_all_at_once(tmp_path: Path, sanitizer: str) -> None:
    program = built(sanitizer)
    workdir = tmp_path / "work"
    workdir.mkdir()
    said = run(program, workdir, str(THREADS), str(ROUNDS))
    # Each round makes one thread more; the last of all are not planned, and have no blocks.
    ruled = THREADS * ROUNDS - 1  # all but 0.1, whose blocks all have places of their own
    planned = 2 * ruled + 4
    assert said == f"0 wrong, {planned + 2 * ruled} placed\n"
    logged = read_logged_run(workdir, {})
    assert len(logged.threads) == (THREADS + 1) * ROUNDS + 1
    assert sum(thread.planned for thread in logged.threads.values()) == THREADS * ROUNDS + 1
    blocks = [region for region in logged.regions.values() if region.pages]
    assert len(blocks) == planned + ruled and all(region.error == 0 for region in blocks)
    assert all(sum(region.pages.values()) == max(1, region.blocks) * BLOCK for region in blocks)
    assert sum(region.blocks == 2 for region in blocks) == ruled


def test_children_are_placed_while_others_are_looked_at(tmp_path: Path) -> None:
    program = built("address,undefined")
    workdir = tmp_path / "work"
    workdir.mkdir()
    said = run(program, workdir, "fork")
    assert said.startswith("0 wrong"), said
    logged = read_logged_run(workdir, {})
    assert {f"p0.{child}" for child in range(1, 21)} <= set(logged.processes)
    assert sum(bool(region.pages) for region in logged.regions.values()) >= 21
