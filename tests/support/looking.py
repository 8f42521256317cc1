"""Programs whose threads and memory are placed wrongly or well on 4x2, and looks at them from outside.

The snapshots are taken by programs/look/work.c, wherever it runs, and read here.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from numaplan.launcher.look.find.findings import Answer, find
from numaplan.launcher.look.find.view import View
from numaplan.launcher.look.read.snapshot import read_snapshot
from numaplan.machine import Core, Machine, Node
from tests.support.guests import SharedGuest
from tests.support.programs import PROGRAMS, compiled

MACHINE = Machine.load("4x2")
# Two nodes of two cores of two hyperthreads, and slow memory; the lab's cpus only are called hyperthreads.
TIERED = Machine(
    name="2x4 and slow memory",
    nodes=(Node(id=0, cpus=(0, 1, 2, 3)), Node(id=1, cpus=(4, 5, 6, 7)), Node(id=2)),
    distances=((10.0, 21.0, 24.0), (21.0, 10.0, 31.0), (24.0, 31.0, 10.0)),
    cores=tuple(Core(cpus=(cpu, cpu + 1), node=cpu // 4, l3=cpu // 4) for cpu in range(0, 8, 2)),
)
_NUMBER = re.compile(r"\b\d+\b")


class Case(NamedTuple):
    """Words of programs/look/work.c, the finding that is expected, and a command before the program.

    root: whether only root can make it so; machine: that it runs on.
    """

    name: str
    finding: str
    words: str
    before: str = ""
    root: bool = False
    machine: Machine = MACHINE


FAULTS = (
    Case("made on another node", "memory-away", "2-3:t0:6 2-3:t0:6"),
    Case("made on all nodes", "memory-away", "4-5:t0-3:8"),
    Case("two processes, one away", "memory-away", "2:t1:6 -- 6:t0:6"),
    Case("threads left their memory", "threads-away", "4:t0:6 6:t0:6"),
    Case("one thread made all, for eight", "memory-on-one-node", " ".join(["-:t0:4"] * 8)),
    Case("numactl with the wrong node", "policy-away", "2:t1:6 3:t1:6", "numactl --membind=3"),
    Case("bound by itself to the wrong node", "policy-away", "2-3:b0:6"),
    Case("interleaved, on one node", "interleave-by-accident", "2:t1:6 3:t1:6", "numactl --interleave=all"),
    Case("mbind forbidden", "mbind-forbidden", "-x 2-3:b1:8"),
    Case("the node is full", "node-full", "-f 1 -:t1:48", "numactl --cpunodebind=1 --preferred=1"),
    Case("a cpuset without its memory", "cpuset-without-memory", "-g 2-3/0 -:t1:8", root=True),
    Case("huge pages elsewhere", "huge-pages-elsewhere", "-H 0:4 2:h1:8", root=True),
    Case("threads on one cpu", "pinned-together", "2:t1:4 2:t1:4 4:t2:4"),
    Case("affinity for one cpu", "too-few-cpus", "2:t1:4 2:t1:4", "taskset -c 2"),
    Case("two programs on one cpu", "programs-on-one-cpu", "4:t3:4 -- 4:t3:4"),
    Case("siblings of one core", "siblings-doubled", "0:t0:6 1:t0:6", machine=TIERED),
    Case("in slow memory", "slow-memory", "-d 2 0-3:t0:8", machine=TIERED),
    Case("all ranks on one node", "everything-on-one-node", " -- ".join(["0-1:t0:4"] * 4)),
)
HEALTHY = (
    Case("idle", "", "0:s0:1 1:s0:1"),
    Case("one thread at home", "", "2:t1:8"),
    Case("each with its own part", "", " ".join(f"{cpu}:t{cpu // 2}:4" for cpu in range(8))),
    Case("a process on each node", "", " -- ".join(f"{2 * node}:t{node}:6" for node in range(4))),
    Case(
        "interleaved for all nodes",
        "",
        " ".join(f"{cpu}:t0:4" for cpu in range(8)),
        "numactl --interleave=all",
    ),
    Case("in the caches", "", "2:t0:1"),
    Case("bound to its node", "", "4-5:t2:6 4-5:t2:6", "numactl --cpunodebind=2 --membind=2"),
    Case("bound by itself", "", "4-5:b2:6"),
    Case("preferring its node", "", "6-7:p3:8"),
    Case("a sandbox, all local", "", "-x 2-3:t1:8"),
    Case("a cpuset with its memory", "", "-g 2-3/1 -:t1:8", root=True),
    Case("huge pages at home", "", "-H 1:4 2:h1:8", root=True),
    Case("two programs on one node", "", "2:t1:6 -- 3:t1:6"),
    Case("more threads than cpus", "", " ".join(f"-:t{k % 4}:4" for k in range(16))),
    Case("a core for each", "", "0:t0:6 2:t0:6", machine=TIERED),
    Case("a sleeper on the same cpu", "", "2:t1:6 2:s0:1 2:s0:1"),
)


def unpacked(said: str, folder: Path) -> tuple[Path, Path]:
    """The trees of the two snapshots in what work.c wrote."""
    for part in said.split("\1")[1:]:
        name, _, content = part.partition("\n")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder / "1", folder / "2"


def answered(said: str, folder: Path, machine: Machine = MACHINE) -> Answer:
    """What is found in the snapshots that work.c wrote."""
    first, second = unpacked(said, folder)
    pids = [number for name, number in numbers(second).items() if name.startswith("P")]
    before = read_snapshot(first, pids)
    return find(View(before, read_snapshot(second, pids, before), machine))


def numbers(tree: Path) -> dict[str, int]:
    """The ids of processes and threads in a snapshot, by their names in $CURE."""
    rows = (line.split() for line in (tree / "numbers").read_text().splitlines())
    return {name: int(number) for name, number in rows}


class Cured(NamedTuple):
    """The same program, cured: how to start it, and what its environment has more."""

    argv: Sequence[str]
    environment: Mapping[str, str]


def cured(cure: Sequence[str], argv: Sequence[str], before: str, ids: Mapping[str, int]) -> Cured:
    """What the commands of a finding make of a start of work.c.

    Commands for a running program are run by it, its ids in them replaced; one that starts it again is used.
    """
    names = {str(number): f"${name}" for name, number in ids.items()}
    command = " ".join(argv)
    live, started, prepared = [], [*before.split(), *argv], []
    for line in cure:
        if line.endswith(command):
            started = [*line.removesuffix(command).split(), *argv]
            prepared, live = [*prepared, *live], []
        else:
            live.append(_NUMBER.sub(lambda found: names.get(found[0], found[0]), line))
    if prepared:
        started = ["sh", "-c", "; ".join([*prepared, 'exec "$@"']), "sh", *started]
    return Cured(started, {"CURE": "; ".join(live)} if live else {})


def work_program() -> Path:
    """The program of the cases, compiled."""
    source = PROGRAMS / "look/work.c"
    return compiled(source, flags=("-std=gnu11", "-O2", "-g", "-D_GNU_SOURCE", "-lpthread"))


class Looked(NamedTuple):
    """A case that ran in the lab: what /proc said, what was found in that, the share of local accesses."""

    said: str
    answer: Answer
    local_share: float
    ids: Mapping[str, int]


def run_case(guest: SharedGuest, case: Case, folder: Path) -> Looked:
    """Run a case on its machine, without AutoNUMA, which would change it meanwhile, and look at it."""
    argv = [str(work_program()), *case.words.split()]
    said, result = run_counted(guest, [*case.before.split(), *argv], {"SHOTS": "1"})
    answer = answered(said, folder, case.machine)
    return Looked(said, answer, result["local_share"], numbers(folder / "2"))


def run_cured(guest: SharedGuest, case: Case, looked: Looked) -> float:
    """The share of local accesses once the first finding's cure is applied."""
    argv = [str(work_program()), *case.words.split()]
    again = cured(looked.answer.findings[0].cure, argv, case.before, looked.ids)
    share: float = run_counted(guest, again.argv, again.environment)[1]["local_share"]
    return share


def run_counted(
    guest: SharedGuest,
    argv: Sequence[str],
    more: Mapping[str, str],
    config: str = "no-autonuma",
    **options: str,
) -> tuple[str, dict[str, Any]]:
    """What a program wrote, and the lab's result; it must succeed."""
    with patch.dict(os.environ, more):
        said, result = guest.said(*argv, config=config, by_thread=False, **options)
    assert result["exit_code"] == 0, said[-1000:]
    return said, result
