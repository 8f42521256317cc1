"""What it costs to find a plan among 10,000: processor time of `nlaunch --auto`, against `nlaunch --plan`.

Both run at once, and which of them starts first takes turns, so that what others take of the machine is in
both of a pair; a difference is the median of NUMAPLAN_REPEAT pairs (25), with its 95 % interval. A run
without a plan is against a Python that becomes the program.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.medians import median_interval
from numaplan.machine import Machine
from numaplan.mapper import Plan
from numaplan.mapper.store.keys import program_key
from numaplan.mapper.store.opening import open_store
from tests.support.launching import plan_for

PLANS = 10_000
_BARE = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
_SOURCE = "int main(void) { return 0; }"


def run() -> dict[str, Any]:
    """Seconds of processor time, and what looking a plan up adds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, stranger = folder / "program", folder / "stranger"
        for path, flags in ((program, "-O1"), (stranger, "-O0")):
            subprocess.run(
                ["gcc", "-x", "c", f"-DWHO={path.name}", flags, "-g", "-o", path, "-"],
                input=_SOURCE.encode(),
                check=True,
            )
        plan = plan_for([str(program)])
        plan.save(folder / "plan.json")
        stores = {name: folder / name for name in ("builds", "classes")}
        for name, store in stores.items():
            _fill(store, plan, [str(program)], by_class=name == "classes")
        return _measured(folder, program, stranger, stores)


def _fill(root: Path, plan: Plan, argv: Sequence[str], *, by_class: bool) -> None:
    """The plan, and as many more: of other builds, or of other classes of its own."""
    store, key = open_store(str(root)), program_key(argv, {})
    file = Path(store.put(store.parts(key, Machine.load("local")), plan))
    for number in range(PLANS):
        other = file.with_name(f"r1-tany-{number:012x}.json")
        if not by_class:
            other = root / f"{number:040x}" / file.parent.name / file.name
            other.parent.mkdir(parents=True)
        os.link(file, other)


def _measured(folder: Path, program: Path, stranger: Path, stores: Mapping[str, Path]) -> dict[str, Any]:
    nlaunch = [str(Path(sys.executable).with_name("nlaunch")), "--quiet"]
    auto = {name: [*nlaunch, "--auto", "--store", str(store)] for name, store in stores.items()}
    by_hand = [*nlaunch, "--plan", str(folder / "plan.json"), str(program)]
    rows = {
        "its class, 10,000 other builds": (by_hand, [*auto["builds"], str(program)]),
        "its class, 10,000 others of its build": (by_hand, [*auto["classes"], str(program)]),
        "another class, 10,000 of its build": (by_hand, [*auto["classes"], str(program), "other"]),
        "no plan, 10,000 of other builds": (
            [sys.executable, "-c", _BARE, str(stranger)],
            [*auto["builds"], str(stranger)],
        ),
    }
    found: dict[str, Any] = {}
    repeat = int(os.environ.get("NUMAPLAN_REPEAT", "25"))
    for what, (peer, ours) in rows.items():
        pairs = [_seconds(peer, ours, ours_first=bool(turn % 2)) for turn in range(repeat)]
        added = sorted(b - a for a, b in pairs)
        low, high = median_interval(len(added))
        found[what] = {
            "nlaunch --plan, s" if peer is by_hand else "python -c execv, s": median(a for a, _ in pairs),
            "nlaunch --auto, s": median(b for _, b in pairs),
            "ratio": median(b / a for a, b in pairs),
            "adds, ms": median(added) * 1e3,
            "adds, ms, 95 % interval": f"{added[low] * 1e3:.1f} to {added[high] * 1e3:.1f}",
        }
    return found


def _seconds(peer: list[str], ours: list[str], *, ours_first: bool) -> tuple[float, float]:
    """Processor time of two commands that run at the same time, and of all that they start."""
    pids = {}
    for argv in (ours, peer) if ours_first else (peer, ours):
        pids[argv is ours] = os.posix_spawn(argv[0], argv, os.environ)
    return _used(pids[False]), _used(pids[True])


def _used(pid: int) -> float:
    _, status, usage = os.wait4(pid, 0)
    assert status == 0
    return usage.ru_utime + usage.ru_stime
