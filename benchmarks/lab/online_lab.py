"""Online policies on a booted kernel: the local share of a program, counted, beside what the kernel does.

All runs of a program are made in one boot, in turns. NUMAPLAN_MACHINE: which machine (2x2); NUMAPLAN_REPEAT:
runs each (3); NUMAPLAN_ROUNDS: how long (8000); NUMAPLAN_PERIOD: the policies' T in seconds (1), each 50
million accesses; NUMAPLAN_PROGRAMS, NUMAPLAN_POLICIES: which, by comma (policies
and `default`, `no-autonuma`, `plan`); NUMAPLAN_KEEP: a folder for the loops' journals; NUMAPLAN_BESIDE: 1
leaves AutoNUMA on beside the loops.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import ROOT
from numaplan.lab.guest.control import QemuFaultError
from numaplan.lab.runs.results import LabRun, summarize
from numaplan.lab.runs.session import Request, Session, open_session
from numaplan.launcher.online.actuator import Budget

EXAMPLES = ROOT / "examples"
POLICIES = ("numaplan", "nimar+lmma", "dino")
KERNEL = ("default", "no-autonuma")
_STENCIL = 0.27  # iterations a round, so that both programs take about as long
_BETWEEN = 4  # seconds between visits


class Program(NamedTuple):
    """What to run, settings of a policy that it needs, and whether it has a plan (and AutoNUMA beside)."""

    argv: list[str]
    settings: dict[str, str]
    planned: bool = False


@dataclass
class Moves:
    """What a loop did in one run, by its journal; allowed: thread moves that the budget had for that time;
    seconds: of processor time, of each look.
    """

    threads: int = 0
    allowed: float = 0.0
    megabytes: float = 0.0
    looks: int = 0
    seconds: list[float] = field(default_factory=list)


def run() -> dict[str, Any]:
    """By program and configuration: median, least and greatest local share in %, and what was moved."""
    machine = os.environ.get("NUMAPLAN_MACHINE", "2x2")
    repeat = int(os.environ.get("NUMAPLAN_REPEAT", "3"))
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        programs = _programs(Path(name), machine)
        for title in _chosen("NUMAPLAN_PROGRAMS", programs):
            program = programs[title]
            plan = _plan(program.argv, Path(name), machine) if program.planned else ""
            request = Request(program.argv, machine, plan=plan)
            folder = Path(os.environ.get("NUMAPLAN_KEEP", name)).resolve()
            for config, runs in _compare(title, program, request, repeat, folder).items():
                for key, value in _row(runs).items():
                    results[f"{title}: {config}: {key}"] = value
    return results


def _chosen(variable: str, known: Iterable[str]) -> list[str]:
    wanted = [name for name in os.environ.get(variable, "").split(",") if name]
    return wanted or list(known)


def _programs(folder: Path, machine: str) -> dict[str, Program]:
    """Pairs that change partners half-way, as many threads as cpus. Two programs that together have as many
    threads as cpus (experiment C of [IMAR]; DINO's rule), their memory made by one thread each.
    Two programs each of which alone would fill the machine: side by side, and one that comes and goes while
    another of its kind runs (experiment B: the same codes again, at its peak more threads than cores). And
    one that lies well already.

    DINO moves K = 4096 pages around each that is used from afar: all of a program as small as these. That is
    meant where a program belongs on one node, and would move it to and fro where it has threads on several.
    And NIMAR's m = 5 migrations are of the threads of 40 or 80 cores: here they would be all at once.
    """
    for name in ("partners", "exchange", "stencil"):
        source = EXAMPLES / f"{name}.c"
        subprocess.run(["cc", "-O2", "-pthread", str(source), "-o", str(folder / name)], check=True)
    nodes, cpus = map(int, machine.split("x"))
    rounds = int(os.environ.get("NUMAPLAN_ROUNDS", "8000"))
    threads = nodes * cpus
    alone = [str(folder / "partners"), str(threads), str(rounds)]
    half = [str(folder / "partners"), str(threads // 2), str(rounds * 2)]
    other = [str(folder / "stencil"), str(threads // 2), "16384", str(int(rounds * _STENCIL))]
    alike = [str(folder / "exchange"), str(threads)]
    lasting, visit = ([*alike, str(count), "16384", "4", "0"] for count in (rounds, rounds // 4))
    lies_well = [str(folder / "stencil"), str(threads), "16384", str(int(rounds * _STENCIL))]
    narrow = {"dino": "--set K=16", "nimar+lmma": "--set m=1"}
    return {
        "partners": Program(alone, narrow),
        "exchange": Program([*alike, str(rounds)], narrow),
        "two programs": Program(_together(half, other), {}),
        "two programs, crowded": Program(_together(alone, alone), narrow),
        "visits": Program(_visited(lasting, visit), narrow),
        "placed": Program(lies_well, narrow, planned=True),
    }


def _plan(argv: list[str], folder: Path, machine: str) -> str:
    """A plan from a short run."""
    bin, trace, plan = Path(sys.executable).parent, folder / "trace.db", folder / "plan.json"
    for command in (
        [bin / "nprof", "record", "--period", "100", "-o", trace, "--", *argv[:-1], "40"],
        [bin / "nmap", "plan", trace, "--machine", machine, "-o", plan],
    ):
        subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return str(plan)


def _together(one: list[str], other: list[str]) -> list[str]:
    return ["sh", "-c", f"{' '.join(one)} & {' '.join(other)}; wait"]


def _visited(one: list[str], visitor: list[str]) -> list[str]:
    visits = f"for visit in 1 2; do sleep {_BETWEEN}; {' '.join(visitor)}; done"
    return ["sh", "-c", f"{' '.join(one)} & {visits}; wait"]


def _compare(
    title: str, program: Program, request: Request, repeat: int, folder: Path
) -> dict[str, list[tuple[LabRun, Moves]]]:
    configs = _chosen("NUMAPLAN_POLICIES", (*(["plan"] if request.plan else KERNEL), *POLICIES))
    runs: dict[str, list[tuple[LabRun, Moves]]] = {name: [] for name in configs}
    with open_session(request, lambda said: print(said, file=sys.stderr)) as session:
        for turn in range(repeat):
            for name, done in runs.items():
                journal = folder / f"{title} {name} {turn + 1}.jsonl".replace(" ", "-")
                journal.unlink(missing_ok=True)
                done.append(_once(session, request, name, program.settings.get(name, ""), journal))
                share, moves = done[-1][0].local_share, done[-1][1]
                said = (
                    f"{turn + 1} {name}: local {share:.1%}, {moves.looks} looks, {moves.threads} thread moves"
                )
                print(said, file=sys.stderr, flush=True)
    return runs


def _once(
    session: Session, request: Request, name: str, settings: str, journal: Path
) -> tuple[LabRun, Moves]:
    session.request = request
    if name in (*KERNEL, "plan"):
        return _good(session, name, journal), Moves()
    period = os.environ.get("NUMAPLAN_PERIOD", "1")
    words = f"{name} {settings} --set T={period} --overhead 0.3 --journal {journal}"
    words += f" --plan {request.plan}" if request.plan else ""
    session.request = Request(request.argv, request.machine, online=words)
    beside = request.plan or os.environ.get("NUMAPLAN_BESIDE") == "1"
    config = "online" if beside else "online-alone"
    done = _good(session, config, journal)
    return done, _moves(journal)


def _good(session: Session, config: str, journal: Path) -> LabRun:
    """One run, in another guest where one hangs."""
    try:
        done = session.run(config, stderr=2)
    except QemuFaultError:
        session.reboot()
        journal.unlink(missing_ok=True)
        done = session.run(config, stderr=2)
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
        [look["spent_s"] for look in looks[1:]],
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
        row["s a look"] = median([spent for _done, one in runs for spent in one.seconds] or [0.0])
    return row
