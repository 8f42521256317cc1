"""Build the test programs, make plans for them from one recorded run, and launch them."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from numaplan.launcher.enforce.program import gains_privileges
from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanRegion, PlanThread, Predicted, RegionKey, Run
from numaplan.profiler import path_key
from numaplan.profiler.identity.environment import prepare
from numaplan.profiler.identity.read import read_identity
from numaplan.profiler.identity.records import Identity
from tests.support.programs import PROGRAMS, STRICT, compiled
from tests.support.waiting import PATIENCE_S

NLAUNCH = Path(sys.executable).parent / "nlaunch"
LARGE = 65536


def build(name: str, *flags: str) -> str:
    """The program programs/launcher/NAME.c, compiled with these flags and named by them."""
    source, named = PROGRAMS / "launcher" / f"{name}.c", "".join((name, *flags)).replace("=", "-")
    return str(compiled(source, flags=(*STRICT, *flags, "-lpthread"), compiler="gcc", name=named))


def recorded(argv: Sequence[str]) -> Identity:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            argv,
            env=prepare(Path(folder), os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return read_identity(Path(folder))


def plan_for(argv: Sequence[str], machine: Machine | None = None) -> Plan:
    """Threads in turn over the machine's cpus, every large region on its first node, from one recording."""
    machine = machine or Machine.load("local")
    identity = recorded(argv)
    seats = [(node.id, cpu) for node in machine.cpu_nodes for cpu in node.cpus]
    paths = sorted({t.path for t in identity.threads if t.process == "p0"}, key=path_key)
    threads = tuple(
        PlanThread(
            path=path, thread=n, node=seats[n % len(seats)][0], cpus=(seats[n % len(seats)][1],), load=1.0
        )
        for n, path in enumerate(paths)
    )
    memory = tuple(
        PlanRegion(region=key, policy="bind", runs=(Run(offset=0, bytes=key.bytes, node=seats[0][0]),))
        for key in region_keys(identity)
    )
    return Plan(
        app=PlanApp(argv=tuple(argv), build_id=identity.processes[0].build_id, threads=len(threads)),
        machine=PlanMachine.of(machine),
        method="best",
        objective="balanced",
        threads=threads,
        memory=memory,
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )


def region_keys(identity: Identity) -> list[RegionKey]:
    return [
        RegionKey(
            kind=r.kind,
            name=r.name,
            bytes=r.bytes,
            build_id=r.build_id,
            process=r.process,
            thread=r.thread_path,
            sequence=r.sequence,
        )
        for r in identity.regions
        if r.kind in ("heap", "mmap", "static") and r.bytes >= LARGE and r.process == "p0"
    ]


def nlaunch(
    plan: Plan, folder: Path, argv: Sequence[str], *options: str, stdin: bytes = b"", **env: str
) -> tuple[subprocess.CompletedProcess[bytes], dict[str, Any]]:
    """Run nlaunch; its result and applied.json."""
    plan.save(folder / "plan.json")
    report = folder / "applied.json"
    command = [NLAUNCH, "--plan", folder / "plan.json", "--report", report, *options, "--", *argv]
    result = subprocess.run(
        command, input=stdin, env={**os.environ, **env}, capture_output=True, timeout=PATIENCE_S, check=False
    )
    return result, msgspec.json.decode(report.read_bytes())


def privileged(program: str, folder: Path) -> Path:
    """A copy of a program that runs as somebody else; skips the test where there can be none."""
    if os.geteuid() != 0:
        pytest.skip("only root may give a file away")
    copy = folder / "privileged"
    shutil.copy(program, copy)
    os.chown(copy, 65534, 0)
    copy.chmod(0o4755)
    if not gains_privileges(str(copy)):
        pytest.skip("setuid does nothing on this file system")
    return copy
