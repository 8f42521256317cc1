"""Plans for 16 threads and a large input from recordings of 4 and 8 threads and a small one, in the lab.

Five programs on a machine of 4 nodes with 4 cpus each: beside the plan made from the small recordings is one
made from two recordings of the run that counts. NUMAPLAN_BENCH_KEEP names a folder for the traces and plans.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from numaplan.common import UsageError
from numaplan.mapper import Plan
from numaplan.mapper.scaling.scaled import scaled_workload

MACHINE = "4x4"
WANTED = 16
FOOTPRINT = "256M"  # that the caches are as small for as they would be for a program of this size

# Source, and the arguments of the recordings of 4 and 8 threads and of the run of 16 with 8 times the input.
PROGRAMS: dict[str, tuple[str, Sequence[str], Sequence[str], Sequence[str]]] = {
    "stencil": ("examples/stencil.c", ("4", "8192", "40"), ("8", "4096", "40"), ("16", "16384", "40")),
    "pipeline": ("examples/pipeline.c", ("4", "100", "2048"), ("8", "100", "2048"), ("16", "100", "16384")),
    "groups": (
        "benchmarks/small_recordings.c",
        ("groups", "4", "64", "30"),
        ("groups", "8", "32", "30"),
        ("groups", "16", "128", "30"),
    ),
    "master-worker": (
        "examples/master_worker.c",
        ("3", "200", "8192", "65536"),
        ("7", "200", "8192", "65536"),
        ("15", "600", "8192", "524288"),
    ),
    "grid": (
        "benchmarks/small_recordings.c",
        ("grid", "4", "64", "30"),
        ("grid", "8", "32", "30"),
        ("grid", "16", "128", "30"),
    ),
}


def run() -> dict[str, Any]:
    """By program: the local shares without a plan, with the small recordings' and with the large one's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.environ.get("NUMAPLAN_BENCH_KEEP") or name)
        folder.mkdir(parents=True, exist_ok=True)
        wanted = os.environ.get("NUMAPLAN_BENCH_ONLY", "").split(",")
        return {program: _one(program, folder) for program in PROGRAMS if program in wanted or wanted == [""]}


def _one(program: str, folder: Path) -> dict[str, Any]:
    source, *small, large = PROGRAMS[program]
    binary = folder / program
    subprocess.run(["cc", "-O2", "-pthread", str(ROOT / source), "-o", str(binary)], check=True)
    traces = [_recorded(binary, arguments, folder / f"{program}-{n}.db") for n, arguments in enumerate(small)]
    # Two as well: by one alone, threads may pass for a pool.
    references = [_recorded(binary, large, folder / f"{program}-large-{seed}.db", seed) for seed in (1, 2)]
    plan, real = folder / f"{program}-scaled.json", folder / f"{program}-real.json"
    _nmap("plan", *references, "--machine", MACHINE, "-o", real)
    answer: dict[str, Any] = {}
    try:
        scaled_workload(traces, WANTED, force=False)
    except UsageError as error:
        answer["refused"] = error.what
    _nmap("plan", *traces, "--threads", str(WANTED), "--force", "--machine", MACHINE, "-o", plan)
    found = Plan.load(plan).provenance["scaling"]
    answer |= {"pattern": found["pattern"], "quality": found["quality"], "unsure": "unsure" in found}
    command = [str(binary), *large]
    shares = {
        "without a plan": _share(command),
        "plan of 4 and 8 threads": _share(command, plan),
        "plan of 16 threads": _share(command, real),
    }
    behind = shares["plan of 16 threads"] - shares["plan of 4 and 8 threads"]
    return {**answer, **shares, "behind, in points": 100 * behind}


def _recorded(binary: Path, arguments: Sequence[str], trace: Path, seed: int = 1) -> Path:
    if not trace.exists():
        command = ("record", "--backend", "emulate", "--machine", MACHINE, "--for-footprint", FOOTPRINT)
        chosen = ("--set", f"seed={seed}", "-o", str(trace))
        _tool("nprof", *command, *chosen, "--", str(binary), *arguments)
    return trace


def _nmap(*words: str | Path) -> None:
    _tool("nmap", *map(str, words))


def _share(command: Sequence[str], plan: Path | None = None) -> float:
    chosen = ("--plan", str(plan)) if plan else ()
    output = _tool("nlab", "run", "--machine", MACHINE, *chosen, "--json", "--", *command)
    return float(json.loads(output)["local_share"])


def _tool(name: str, *words: str) -> str:
    found = Path(sys.executable).parent / name
    result = subprocess.run([found, *words], check=True, stdout=subprocess.PIPE, text=True)
    return result.stdout
