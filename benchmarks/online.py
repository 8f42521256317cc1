"""What the loop of `nlaunch --online` costs here, on a program that needs nothing.

Processor time, not seconds: that of the loop and its perf over that of the program while it runs; and the
program's own for the same work, with the loop over without, the runs taking turns and each first every second
time. The same work takes longer when others use the host: beside the median of pairs stands the least of all
runs with the loop over the least without. NUMAPLAN_POLICIES: which, by comma; NUMAPLAN_REPEAT: pairs (9).
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from numaplan.launcher.online import procfs

PARTNERS = Path(__file__).resolve().parent.parent / "examples" / "partners.c"
POLICIES = "numaplan,nimar+lmma,dino"
ARGUMENTS = ["2", "3000", "1048576"]  # 16 MiB, few barriers
_TICKS = os.sysconf("SC_CLK_TCK")
_POLL = 0.05  # seconds


class Used(NamedTuple):
    """Processor seconds of the program, and of the loop with its perf meanwhile."""

    program: float
    loop: float


def run() -> dict[str, Any]:
    """By policy: the loop's time over the program's, and the program's with the loop over without, in %."""
    repeat = int(os.environ.get("NUMAPLAN_REPEAT", "9"))
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        program = [str(Path(name) / "partners"), *ARGUMENTS]
        subprocess.run(["cc", "-O2", "-pthread", str(PARTNERS), "-o", program[0]], check=True)
        for policy in os.environ.get("NUMAPLAN_POLICIES", POLICIES).split(","):
            pairs = [_pair(program, policy, loop_first=bool(turn % 2)) for turn in range(repeat)]
            results[f"{policy}: program's seconds"] = median(alone.program for alone, _ in pairs)
            results[f"{policy}: loop %"] = 100 * median(loop.loop / loop.program for _, loop in pairs)
            slower = [100 * (loop.program / alone.program - 1) for alone, loop in pairs]
            results[f"{policy}: program slower %"] = median(slower)
            results[f"{policy}: that, least and greatest"] = f"{min(slower):.1f} to {max(slower):.1f}"
            least = [min(run.program for run in runs) for runs in zip(*pairs, strict=True)]
            results[f"{policy}: least over least, slower %"] = 100 * (least[1] / least[0] - 1)
    return results


def _pair(program: list[str], policy: str, loop_first: bool) -> tuple[Used, Used]:
    """Without the loop and with it."""
    launchers = [[], _launcher(policy)]
    runs = [_measure(program, launchers[with_loop]) for with_loop in (loop_first, not loop_first)]
    return (runs[1], runs[0]) if loop_first else (runs[0], runs[1])


def _launcher(policy: str) -> list[str]:
    return [str(Path(sys.executable).with_name("nlaunch")), "-q", "--online", policy, "--"]


def _measure(program: list[str], launcher: list[str]) -> Used:
    """One run; the loop's time counts from when the program is seen to run."""
    with subprocess.Popen([*launcher, *program], stdout=subprocess.DEVNULL) as process:
        if not launcher:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            return Used(usage.ru_utime + usage.ru_stime, 0.0)
        first = last = None
        seen: float = 0.0
        while process.poll() is None:
            tree = _tree(process.pid, program[0])
            if tree is not None:
                first, last = first or tree, tree
                seen = max(seen, tree.program)
            time.sleep(_POLL)
    if process.returncode or first is None or last is None:
        raise RuntimeError(f"{' '.join(launcher)} exited with {process.returncode}")
    return Used(seen, last.loop - first.loop)


def _tree(root: int, program: str) -> Used | None:
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
