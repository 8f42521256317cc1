"""The lab: how long a boot takes, and what counting costs against the same guest uncounted."""

import os
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import ROOT
from numaplan.lab.guest.guest import Guest
from numaplan.lab.guest.job import Job
from numaplan.lab.guest.shape import dense, shape_guest
from numaplan.lab.runs.counts import parse_counts
from numaplan.machine import Machine

STENCIL = ROOT / "examples" / "stencil.c"
MEMORY_MIB = 2048
ITERATIONS = 600  # some 130 million accesses
REPEAT = 3


def run() -> dict[str, Any]:
    """Boot a 4x2 guest with and without the plugin and run the stencil in each; best of three runs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = str(folder / "stencil")
        subprocess.run(["cc", "-O2", "-pthread", str(STENCIL), "-o", program], check=True)
        argv = [program, "8", "4096", str(ITERATIONS)]
        started = perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        native = perf_counter() - started
        counted = _measure(argv, folder / "counted", True)
        plain = _measure(argv, folder / "plain", False)
    return {
        "boot seconds": counted["boot"],
        "boot processor seconds": counted["boot_cpu"],
        "boot seconds without the plugin": plain["boot"],
        "peak memory MiB": counted["memory"],
        "accesses": counted["accesses"],
        "processor seconds counted": counted["cpu"],
        "processor seconds uncounted": plain["cpu"],
        "counting costs (ratio)": counted["cpu"] / plain["cpu"],
        "accesses counted a processor second": counted["accesses"] / counted["cpu"],
        "native seconds": native,
    }


def _cpu_seconds(pid: int) -> float:
    """Processor time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mib(pid: int) -> int:
    """The most memory that a process has held so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM"))


def _measure(argv: list[str], folder: Path, counted: bool) -> dict[str, float]:
    machine = dense(Machine.load("4x2"))
    folder.mkdir()
    job = Job(argv[0], argv, dict(os.environ), "/", timeout=300)
    used: list[float] = []
    accesses = 0
    with Guest(shape_guest(machine, MEMORY_MIB, 1 << 20), folder, counted) as guest:
        boot_cpu = _cpu_seconds(guest.pid)
        for _ in range(REPEAT):
            before = _cpu_seconds(guest.pid)
            outcome = guest.run(job)
            used.append(_cpu_seconds(guest.pid) - before)
            if counted:
                accesses = int(parse_counts(outcome.counts, 8, 4).accesses.sum())
        return {
            "boot": guest.boot_seconds,
            "boot_cpu": boot_cpu,
            "memory": _resident_mib(guest.pid),
            "cpu": min(used),
            "accesses": accesses,
        }
