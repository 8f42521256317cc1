"""How fast emulation is: accesses a second on a streaming kernel, and the slowdown against native.

Each figure is that of a long run less a short one, so that start-up does not count, and the best of three,
all in the same run. On a machine shared with others, cpu time says more than the clock.
"""

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numaplan.machine import Machine
from numaplan.profiler.backends.base import Backend, RecordRequest
from numaplan.profiler.backends.choice import backend_of
from numaplan.profiler.backends.emulation.qemu import find_qemu

SOURCE = Path(__file__).with_name("emulation_stream.c")
REPEATS = 3
SHORT, LONG = 2, 102  # passes
NATIVE_LONG = 1002
ACCESSES_A_PASS = 3 << 19  # of one thread
PERIOD = 1000
# name -> (threads, sampling period, options)
MODES: dict[str, tuple[int, int, Mapping[str, str]]] = {
    "cache": (1, PERIOD, {}),
    "no-cache": (1, PERIOD, {"cache": "off"}),
    "cache, every access kept": (1, 1, {}),
    "cache, 8 threads in turns": (8, PERIOD, {}),
    "no-cache, 8 threads in turns": (8, PERIOD, {"cache": "off"}),
    "no-cache, 8 threads free": (8, PERIOD, {"cache": "off", "schedule": "free"}),
}
# The same in the lab's guest, where there is one; threads that touch new memory at once take it minutes.
LAB_MODES: dict[str, tuple[int, int, Mapping[str, str]]] = {
    "lab, cache": (1, PERIOD, {}),
    "lab, no-cache": (1, PERIOD, {"cache": "off"}),
}


@dataclass(frozen=True)
class Cost:
    """What a run takes, in seconds by the clock and of cpu time."""

    wall: float
    cpu: float

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.wall - other.wall, self.cpu - other.cpu)


def _best(action: Callable[[], object]) -> Cost:
    """Cost of the cheapest of some runs of child processes."""
    runs = []
    for _ in range(REPEATS):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        action()
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        runs.append((wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return Cost(min(wall for wall, _ in runs), min(cpu for _, cpu in runs))


def _rates(accesses: float, cost: Cost) -> dict[str, float]:
    return {
        "accesses": accesses,
        "seconds": cost.wall,
        "million_accesses_per_second": accesses / cost.wall / 1e6,
        "million_accesses_per_cpu_second": accesses / cost.cpu / 1e6,
    }


def _run(*command: str) -> Callable[[], object]:
    return lambda: subprocess.run(command, check=True)


def _record(
    backend: Backend, program: str, threads: int, passes: int, period: int, options: Mapping[str, str]
) -> float:
    """Record the kernel once, without reading the samples; returns its loads and stores."""
    with tempfile.TemporaryDirectory() as folder:
        request = RecordRequest(
            [program, str(threads), str(passes)],
            Path(folder),
            Machine.load("4x2"),
            dict(os.environ),
            period,
            options,
        )
        request.identity_dir.mkdir()
        recording = backend.record(request, lambda _what, _share: None)
        return sum(value for *_, event, value in recording.counters if event in ("loads", "stores"))


def _measure(
    backend: Backend, program: str, threads: int, period: int, options: Mapping[str, str]
) -> dict[str, float]:
    # The threads share the passes, so that every mode does about the same work; fewer where all is written.
    long = max(SHORT + 2, (LONG if period > 1 else LONG // 4) // threads)
    counts: dict[int, float] = {}

    def run(passes: int) -> Callable[[], None]:
        def action() -> None:
            counts[passes] = _record(backend, program, threads, passes, period, options)

        return action

    cost = _best(run(long)) - _best(run(SHORT))
    return _rates(counts[long] - counts[SHORT], cost)


def run() -> dict[str, Any]:
    """Measure every mode; needs gcc and qemu-x86_64 (raises MachineLacksError without the latter)."""
    qemu = find_qemu(os.uname().machine)
    user_mode, lab = backend_of("emulate"), backend_of("lab")
    in_the_lab = LAB_MODES if lab.available(Machine.load("4x2")).ok else {}
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "stream")
        subprocess.run(
            ["gcc", "-O2", "-fno-tree-vectorize", str(SOURCE), "-o", program, "-lpthread"], check=True
        )
        native = _best(_run(program, "1", str(NATIVE_LONG))) - _best(_run(program, "1", str(SHORT)))
        plain = _best(_run(*qemu, program, "1", str(LONG))) - _best(_run(*qemu, program, "1", str(SHORT)))
        modes = {
            "native": _rates((NATIVE_LONG - SHORT) * ACCESSES_A_PASS, native),
            "QEMU without our plugin": _rates((LONG - SHORT) * ACCESSES_A_PASS, plain),
            **{name: _measure(user_mode, program, *mode) for name, mode in MODES.items()},
            **{name: _measure(lab, program, *mode) for name, mode in in_the_lab.items()},
        }
    for mode in modes.values():
        for kind in ("second", "cpu_second"):
            rate = f"million_accesses_per_{kind}"
            mode[f"slowdown_by_{kind}"] = modes["native"][rate] / mode[rate]
    return {"schema": "numaplan/benchmark-emulation/1", "modes": modes}
