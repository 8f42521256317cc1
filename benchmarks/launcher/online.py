"""What the loop of `nlaunch --online` costs here, on a program that gains nothing from it.

Processor time, not seconds, as others use the host. That of the loop and its perf, over that of the program
meanwhile. And the program's own, with the loop over without, for the same work done in the same seconds: the
program runs twice at once, one of the twins under the loop, so that whatever else slows this machine slows
both; which of them starts first takes turns. NUMAPLAN_POLICIES: which, by comma; NUMAPLAN_REPEAT: twins (15).
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import ROOT
from benchmarks.medians import median_interval
from numaplan.launcher.process import procfs

PARTNERS = ROOT / "examples" / "partners.c"
POLICIES = "numaplan,nimar+lmma,dino"
ARGUMENTS = ["2", "3000", "1048576"]  # 16 MiB, few barriers
_TIMED = ["sh", "-c", '"$@"; code=$?; times; exit $code', "sh"]  # tells at the end what the program used
_TICKS = os.sysconf("SC_CLK_TCK")
_POLL = 0.05  # seconds


class Used(NamedTuple):
    """Processor seconds of the program, and of the loop with its perf."""

    program: float
    loop: float


class Twins(NamedTuple):
    """Processor seconds of the twin without a loop and of the one with it, and the loop's for each of its."""

    alone: float
    watched: float
    loop: float

    @property
    def slower(self) -> float:
        """%."""
        return 100 * (self.watched / self.alone - 1)


def run() -> dict[str, Any]:
    """By policy: the loop's time over the program's, and the program's with the loop over without, in %."""
    repeat = int(os.environ.get("NUMAPLAN_REPEAT", "15"))
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        program = [str(Path(name) / "partners"), *ARGUMENTS]
        subprocess.run(["cc", "-O2", "-pthread", str(PARTNERS), "-o", program[0]], check=True)
        for policy in os.environ.get("NUMAPLAN_POLICIES", POLICIES).split(","):
            twins = [_twins(program, policy, watched_first=bool(turn % 2)) for turn in range(repeat)]
            slower = sorted(pair.slower for pair in twins)
            low, high = median_interval(len(slower))
            results[f"{policy}: program's seconds"] = median(pair.alone for pair in twins)
            results[f"{policy}: loop %"] = 100 * median(pair.loop for pair in twins)
            results[f"{policy}: program slower %"] = median(slower)
            results[f"{policy}: that, 95 % interval"] = f"{slower[low]:.1f} to {slower[high]:.1f}"
    return results


def _twins(program: list[str], policy: str, watched_first: bool) -> Twins:
    """The program twice at the same time."""
    launcher = [str(Path(sys.executable).with_name("nlaunch")), "-q", "--online", policy, "--"]
    words = [[*_TIMED, *program], [*launcher, *_TIMED, *program]]
    order = (1, 0) if watched_first else (0, 1)
    running = {at: subprocess.Popen(words[at], stdout=subprocess.PIPE, text=True) for at in order}
    loop = _loop_share(running[1], program[0])
    alone, watched = (_finished(running[at]) for at in (0, 1))
    return Twins(alone, watched, loop)


def _finished(process: subprocess.Popen[str]) -> float:
    """Processor seconds of the program that was started, when it has ended."""
    said, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{process.args!r} exited with {process.returncode}")
    return sum(60 * int(minutes) + float(rest) for minutes, rest in re.findall(r"(\d+)m([\d.]+)s", said)[2:])


def _loop_share(process: subprocess.Popen[str], program: str) -> float:
    """What the loop and its perf use for each second of the program, from when that is seen to run."""
    first = last = None
    while process.poll() is None:
        used = _used(process.pid, program)
        if used is not None:
            first, last = first or used, used
        time.sleep(_POLL)
    if first is None or last is None or last.program == first.program:
        raise RuntimeError("the program was not seen to run")
    return (last.loop - first.loop) / (last.program - first.program)


def _used(root: int, program: str) -> Used | None:
    """What the processes of a launch have used so far; None while the program does not run."""
    used = {pid: _seconds(pid) for pid in procfs.families([root])}
    ours = next((pid for pid in used if _command(pid) == program), None)
    if ours is None:
        return None
    return Used(used[ours], sum(seconds for pid, seconds in used.items() if pid != ours))


def _seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    except OSError:
        return ""
