"""What launching with a plan costs: start-up, threads, allocations, steady state; nlaunch before the program.

Every figure is against the same program without us, runs taken in turn, best of several.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from numaplan.launcher.compact import compact
from numaplan.launcher.launch import LIBRARY
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanThread, Predicted
from numaplan.profiler.identity import prepare
from numaplan.profiler.machine import Machine

SOURCE = Path(__file__).with_name("launcher_cost.c")
REPEATS = 7
THREADS = 64
# name -> (mode and count of launcher_cost.c)
INSIDE = {
    "64 threads made and joined": ("threads", 64),
    "6400 threads made and joined": ("threads", 6400),
    "malloc and free of 64 bytes": ("small", 20_000_000),
    "malloc and free of 1 MiB": ("large", 100_000),
}
STEADY = ("work", 200_000_000)
STEADY_REPEATS = 15

Environments = dict[str, Mapping[str, str]]


def run() -> dict[str, Any]:
    """Seconds and ratios by what is measured and which library is loaded."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "cost"
        subprocess.run(["gcc", "-std=c11", "-O2", "-o", program, SOURCE, "-lpthread"], check=True)
        environments = _environments(folder)
        results = {
            what: _compare(environments, lambda env, words=words: _own_clock(program, words, env))
            for what, words in INSIDE.items()
        }
        results["arithmetic, user time of the whole process"] = _compare(
            environments, lambda env: _user_time([str(program), *map(str, STEADY)], env), STEADY_REPEATS
        )
        results["process with 64 threads, start to end"] = _compare(
            environments, lambda env: _clock([str(program), "threads", "64"], env)
        )
        results["command before and after the program"] = _command(folder)
    return results


def _plan() -> Plan:
    machine = Machine.load("local")
    cpus = machine.cpus
    return Plan(
        app=PlanApp(threads=THREADS + 1),
        machine=PlanMachine.of(machine),
        method="compact",
        objective="balanced",
        threads=tuple(
            PlanThread(
                path=f"0.{n}" if n else "0",
                thread=n,
                node=machine.node_of_cpu[cpus[n % len(cpus)]],
                cpus=(cpus[n % len(cpus)],),
                load=1.0,
            )
            for n in range(THREADS + 1)
        ),
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )


def _environments(folder: Path) -> Environments:
    """Without us, with the recording library, with the enforcing library and a plan for 64 threads."""
    found: Environments = {"without": dict(os.environ)}
    for name in ("record", "launch"):
        workdir = folder / name
        workdir.mkdir()
        library = {"library": LIBRARY} if name == "launch" else {}
        found[name] = prepare(workdir, os.environ, **library)
    place = folder / "plan.bin"
    place.write_bytes(compact(_plan(), {"": Machine.load("local").cpus}, lambda _module, _symbol: None).data)
    found["launch"] = {**found["launch"], "NUMAPLAN_PLAN": str(place)}
    return found


def _compare(
    environments: Environments, measure: Callable[[Mapping[str, str]], float], repeats: int = REPEATS
) -> dict[str, float]:
    best = dict.fromkeys(environments, float("inf"))
    for _ in range(repeats):
        for name, environment in environments.items():
            best[name] = min(best[name], measure(environment))
    without = best["without"]
    ratios = {f"{name} ratio": best[name] / without for name in environments if name != "without"}
    return {"without us, s": without, **ratios, "launch adds, ms": (best["launch"] - without) * 1000}


def _own_clock(program: Path, words: Sequence[str | int], environment: Mapping[str, str]) -> float:
    argv = [str(program), *map(str, words)]
    return int(subprocess.run(argv, env=environment, capture_output=True, check=True).stdout) / 1e9


def _user_time(argv: Sequence[str], environment: Mapping[str, str]) -> float:
    """What others take of the processor is not in it, as it is in a clock's time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(argv, env=environment, stdout=subprocess.DEVNULL, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def _clock(argv: Sequence[str], environment: Mapping[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def _command(folder: Path) -> dict[str, float]:
    """nlaunch around a program that ends at once, against a bare Python."""
    plan = folder / "plan.json"
    _plan().save(plan)
    stamp = folder / "stamp"
    nlaunch = str(Path(sys.executable).with_name("nlaunch"))
    # The program's first act is to stamp a file: what lies before is ours.
    argv = [nlaunch, "--quiet", "--plan", str(plan), "touch", str(stamp)]
    before = whole = bare = float("inf")
    for _ in range(REPEATS):
        bare = min(bare, _clock([sys.executable, "-c", "pass"], os.environ))
        started = time.time()
        whole = min(whole, _clock(argv, os.environ))
        before = min(before, stamp.stat().st_mtime - started)
    return {
        "bare python, s": bare,
        "before the program, s": before,
        "added to bare python, s": before - bare,
        "whole, s": whole,
        "before / python": before / bare,
    }
