"""Online policies on a booted kernel: the local share of a program, counted, beside what the kernel does.

All runs of a program are made in one boot, in turns. NUMAPLAN_MACHINE: which machine (2x2); NUMAPLAN_REPEAT:
runs each (3); NUMAPLAN_ROUNDS: how long (8000); NUMAPLAN_PROGRAMS, NUMAPLAN_POLICIES: which, by comma.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numaplan.launcher.lab.guest import Guest, interruptible
from numaplan.launcher.lab.places import own_folder
from numaplan.launcher.lab.results import LabRun, summarize
from numaplan.launcher.lab.session import Request, Session, guest_shape
from numaplan.launcher.online.budget import Budget

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
# An emulated machine knows no load: a remote access costs 2.1 times a local one, which the default delta_busy
# takes for a busy node. And programs are a thousandth of those that K = 4096 was made for.
POLICIES = {
    "numaplan": "numaplan --set patience=4",
    "nimar+lmma": "nimar+lmma --set delta_busy=2.2",
    "dino": "dino --set K=16",
}
COMMON = "--set T=1 --overhead 0.3"
KERNEL = ("default", "no-autonuma")


@dataclass
class Moves:
    """What a loop did in one run, by its journal; allowed: thread moves that the budget had for that time."""

    threads: int = 0
    allowed: float = 0.0
    megabytes: float = 0.0
    looks: int = 0


def run() -> dict[str, Any]:
    """By program and configuration: median, least and greatest local share in %, and what was moved."""
    machine = os.environ.get("NUMAPLAN_MACHINE", "2x2")
    repeat = int(os.environ.get("NUMAPLAN_REPEAT", "3"))
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        programs = _programs(Path(name), machine)
        for title in _chosen("NUMAPLAN_PROGRAMS", programs):
            for config, runs in _compare(programs[title], machine, repeat).items():
                for key, value in _row(runs).items():
                    results[f"{title}: {config}: {key}"] = value
    return results


def _chosen(variable: str, known: dict[str, Any]) -> list[str]:
    wanted = [name for name in os.environ.get(variable, "").split(",") if name]
    return wanted or list(known)


def _programs(folder: Path, machine: str) -> dict[str, list[str]]:
    """Pairs that change partners half-way, as many threads as cpus; and two such programs at once, each of
    which alone would fill the machine."""
    built = folder / "partners"
    subprocess.run(["cc", "-O2", "-pthread", str(EXAMPLES / "partners.c"), "-o", str(built)], check=True)
    nodes, cpus = map(int, machine.split("x"))
    rounds = int(os.environ.get("NUMAPLAN_ROUNDS", "8000"))
    alone = [str(built), str(nodes * cpus), str(rounds)]
    both = f"{' '.join(alone)} & {' '.join(alone)}; wait"
    return {"partners": alone, "two programs": ["sh", "-c", both]}


def _compare(argv: list[str], machine: str, repeat: int) -> dict[str, list[tuple[LabRun, Moves]]]:
    policies = _chosen("NUMAPLAN_POLICIES", POLICIES)
    runs: dict[str, list[tuple[LabRun, Moves]]] = {name: [] for name in (*KERNEL, *policies)}
    request = Request(argv, machine)
    with interruptible(), own_folder() as folder, Guest(guest_shape(request), folder) as guest:
        for turn in range(repeat):
            for name, done in runs.items():
                done.append(_once(guest, request, folder, name))
                share, moves = done[-1][0].local_share, done[-1][1]
                print(f"{turn + 1} {name}: local {share:.1%}, {moves}", file=sys.stderr, flush=True)
    return runs


def _once(guest: Guest, request: Request, folder: Path, name: str) -> tuple[LabRun, Moves]:
    if name in KERNEL:
        return _good(Session(guest, request, folder).run(name, stderr=2)), Moves()
    journal = folder / "journal"
    journal.unlink(missing_ok=True)
    words = f"{POLICIES[name]} {COMMON} --journal {journal}"
    told = Request(request.argv, request.machine, online=words)
    done = _good(Session(guest, told, folder).run("online-alone", stderr=2))
    return done, _moves(journal)


def _good(done: LabRun) -> LabRun:
    if done.exit_code:
        raise RuntimeError(f"{done.config}: the program exited with {done.exit_code}")
    return done


def _looks(journal: Path) -> Iterator[dict[str, Any]]:
    for line in journal.read_text().splitlines():
        entry = json.loads(line)
        if "observed" in entry:
            yield entry


def _moves(journal: Path) -> Moves:
    """Of a journal: thread moves and pages moved, without what was undone."""
    looks = list(_looks(journal))
    actions = [action for look in looks for action in look["actions"]]
    seconds = looks[-1]["time_s"] - looks[0]["time_s"] if looks else 0.0
    return Moves(
        sum(action["moved"] for action in actions if action["move"] == "thread"),
        Budget().moves * (seconds + 4.0),  # it begins with what four seconds save up
        sum(action["moved"] for action in actions if action["move"] == "pages") * 4096 / 1e6,
        len(looks),
    )


def _row(runs: list[tuple[LabRun, Moves]]) -> dict[str, str | float]:
    found = summarize([done for done, _moves in runs]).local_share
    row: dict[str, str | float] = {
        "local share %": f"{100 * found.median:.1f} ({100 * found.min:.1f}-{100 * found.max:.1f})",
        "seconds": summarize([done for done, _moves in runs]).seconds.median,
    }
    if any(moves.looks for _done, moves in runs):
        row["most of the budgeted moves %"] = max(100 * one.threads / one.allowed for _, one in runs)
        row["MB moved"] = max(one.megabytes for _done, one in runs)
        row["looks"] = min(one.looks for _done, one in runs)
    return row
