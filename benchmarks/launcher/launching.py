"""What launching with a plan costs: start-up, threads, allocations, steady state; nlaunch before the program.

Every figure is against the same program without us, runs taken in turn, best of several. Steady state is in
processor time, from the program's own first instruction to its last, and also the median of the ratios of
neighbouring runs: what others take of the machine is in both of a pair.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from numaplan.launcher import LIBRARY
from numaplan.launcher.enforce.plan_table import encode
from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanRegion, PlanThread, Predicted, RegionKey, Run
from numaplan.profiler.identity.environment import prepare

SOURCE = Path(__file__).with_name("launching_cost.c")
REPEATS = 7
THREADS = 64
# name -> (mode and count of launching_cost.c)
INSIDE = {
    "64 threads made and joined": ("threads", 64),
    "6400 threads made and joined": ("threads", 6400),
    "malloc and free of 1 MiB": ("large", 100_000),
}
STEADY = {
    "arithmetic": ("work", 100_000_000),
    "stencil of four threads": ("stencil", 400),
    "lists of small blocks": ("lists", 8),
    "malloc and free of 64 bytes": ("small", 10_000_000),
    "1 MiB mapped, touched, unmapped": ("maps", 400),
}
STEADY_REPEATS = 25
STARTS = 15
POLICIES = ("nimar+lmma", "dino", "numaplan")
_BARE = "import os, sys; os.wait() if os.fork() else os.execv(sys.argv[1], sys.argv[1:])"

Environments = dict[str, Mapping[str, str]]


def run() -> dict[str, Any]:
    """Seconds and ratios by what is measured and which library is loaded."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "cost"
        subprocess.run(["gcc", "-std=c11", "-O2", "-o", program, SOURCE, "-lpthread"], check=True)
        environments = _environments(folder)
        results = {
            what: _compare(
                environments, lambda env, arguments=arguments: _own_clocks(program, arguments, env)[0]
            )
            for what, arguments in INSIDE.items()
        }
        steady = {name: environments[name] for name in ("without", "launch", "launch, memory")}
        for what, arguments in STEADY.items():
            results[f"{what}, processor time"] = _steady(program, arguments, steady)
        results["process with 64 threads, start to end"] = _compare(
            environments, lambda env: _clock([str(program), "threads", "64"], env)
        )
        results["command before the program, processor time"] = _command(folder, program)
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
    """Without us, with the recording library, with the enforcing library and a plan for 64 threads; the same
    with a plan that also names a block of memory, so that every large block is looked up."""
    found: Environments = {"without": dict(os.environ)}
    for name in ("record", "launch", "launch, memory"):
        workdir = folder / name.replace(", ", "-")
        workdir.mkdir()
        if name == "record":
            found[name] = prepare(workdir, os.environ)
            continue
        plan = _plan()
        if name == "launch, memory":
            plan = msgspec.structs.replace(plan, memory=(_elsewhere(plan),))
        place = workdir / "plan.bin"
        place.write_bytes(encode(plan, {"": Machine.load("local").cpus}, lambda _module, _symbol: None).data)
        found[name] = {**prepare(workdir, os.environ, library=LIBRARY), "NUMAPLAN_PLAN": str(place)}
    return found


def _elsewhere(plan: Plan) -> PlanRegion:
    """A block of the main thread that never comes."""
    key = RegionKey(kind="heap", name="cost+0x1", bytes=1 << 30, thread="0", sequence=1 << 30)
    return PlanRegion(
        region=key, policy="bind", runs=(Run(offset=0, bytes=1 << 30, node=plan.threads[0].node),)
    )


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


def _own_clocks(
    program: Path | str, arguments: Sequence[object], environment: Mapping[str, str]
) -> tuple[float, float]:
    """Seconds by the clock and of processor time, as the program itself measured them."""
    argv = [str(program), *map(str, arguments)]
    clocks = subprocess.run(argv, env=environment, capture_output=True, check=True).stdout.split()
    return int(clocks[0]) / 1e9, int(clocks[1]) / 1e9


def _steady(program: Path, arguments: Sequence[str | int], environments: Environments) -> dict[str, float]:
    """Ratios to the run without us: of the best runs, and the median of those of neighbours."""
    seconds: dict[str, list[float]] = {name: [] for name in environments}
    for turn in range(STEADY_REPEATS):
        names = list(environments) if turn % 2 else list(reversed(environments))
        for name in names:
            seconds[name].append(_own_clocks(program, arguments, environments[name])[1])
    without = seconds.pop("without")
    found = {"without us, s": min(without)}
    for name, each in seconds.items():
        found[f"{name} ratio"] = min(each) / min(without)
        found[f"{name} ratio, median"] = median(a / b for a, b in zip(each, without, strict=True))
    return found


def _clock(argv: Sequence[str], environment: Mapping[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def _command(folder: Path, program: Path) -> dict[str, float]:
    """Processor time of nlaunch before the program's first instruction, against a bare Python that starts it.

    What a policy's sampler takes is not in it: perf is a process of its own.
    """
    plan = folder / "plan.json"
    _plan().save(plan)
    nlaunch = str(Path(sys.executable).with_name("nlaunch"))
    starters = {
        "bare python": [sys.executable, "-c", _BARE],
        "nlaunch --plan": [nlaunch, "--quiet", "--plan", str(plan)],
        **{f"nlaunch --online {name}": [nlaunch, "--quiet", "--online", name] for name in POLICIES},
    }
    seconds: dict[str, list[float]] = {name: [] for name in starters}
    for _ in range(STARTS):
        for name, (starter, *arguments) in starters.items():
            clocks = _own_clocks(starter, (*arguments, program, "parent", 0), os.environ)
            seconds[name].append(clocks[0])
    bare = seconds["bare python"]
    found: dict[str, float] = {}
    for name, each in seconds.items():
        found[f"{name}, s"] = min(each)
        found[f"{name}, median of what it adds, s"] = median(a - b for a, b in zip(each, bare, strict=True))
    return found
