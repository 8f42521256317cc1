"""How fast the simulator is: 160 threads for 1,000 simulated seconds on the 80 cpus of server LPL."""

from dataclasses import replace
from time import process_time
from typing import Any

from benchmarks.simulator.calibration import calibration
from benchmarks.simulator.programs import NAS, Task
from benchmarks.simulator.run import Setup, simulate
from numaplan.mapper.online.registry import make_policy

POLICIES = ("", "nimar", "nimar+lmma", "dino", "excl", "numaplan")
PROGRAMS = ("lu", "cg", "ft", "sp", "bt", "mg", "dc", "ua")
THREADS, SECONDS = 160, 1000.0


def setup(policy: str) -> Setup:
    """Eight programs that do not end; `policy` may be empty."""
    endless = [replace(NAS[name], giga_instructions=1e9) for name in PROGRAMS]
    tasks = tuple(Task(program, THREADS // len(PROGRAMS)) for program in endless)
    made = make_policy(policy) if policy else None
    return Setup(calibration("lpl-4x20"), tasks, made, limit_s=SECONDS)


def run() -> dict[str, Any]:
    """Processor seconds of each policy's run; none: the operating system alone."""
    taken = {}
    for policy in POLICIES:
        start = process_time()
        simulate(setup(policy))
        taken[policy or "none"] = process_time() - start
    return {"threads": THREADS, "simulated_seconds": SECONDS, "processor_seconds": taken}
