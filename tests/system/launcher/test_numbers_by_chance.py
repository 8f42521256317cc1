"""Child processes that come under another number than in the plan: they go by what they run."""

import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from numaplan.mapper import Plan
from tests.support.launching import nlaunch
from tests.support.outside import plan_of_threads

pytestmark = pytest.mark.system

SHOW = "grep Cpus_allowed_list /proc/self/status"
FORKS = """
import os, signal
for _ in range({children}):
    ready, began = os.pipe()
    child = os.fork()
    if not child:
        os.write(began, b"x")
        signal.pause()
    os.read(ready, 1)
    print(open(f"/proc/{{child}}/status").read().partition("Cpus_allowed_list:")[2].split()[0], flush=True)
    os.kill(child, 9)
    os.wait()
"""


def plan_of(**programs: str) -> Plan:
    """The first process, and children that ran these."""
    names = {name.replace("_", "."): program for name, program in programs.items()}
    plan = plan_of_threads([("p0", "0"), *((name, "0") for name in names)])
    threads = [
        msgspec.structs.replace(thread, program=names[thread.process]) if thread.process in names else thread
        for thread in plan.threads
    ]
    return msgspec.structs.replace(plan, threads=tuple(threads))


def cpu_of(plan: Plan, process: str) -> str:
    return str(next(thread.cpus[0] for thread in plan.threads if thread.process == process))


def shown(plan: Plan, folder: Path, *argv: str) -> tuple[list[str], dict[str, Any]]:
    """The last word of each line that the program printed, and applied.json."""
    result, applied = nlaunch(plan, folder, argv, "-q")
    assert result.returncode == 0, result.stderr
    return [line.split()[-1].decode() for line in result.stdout.splitlines()], applied


@pytest.fixture(autouse=True)
def _several_cpus() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("on one cpu all have the same")


@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_program_has_its_part_whatever_its_number(tmp_path: Path, before: int) -> None:
    plan = plan_of(p0_1="true", p0_2="grep")
    script = "/bin/true; " * before + f"{SHOW}; exit 0"
    cpus, applied = shown(plan, tmp_path, "sh", "-c", script)
    assert cpus == [cpu_of(plan, "p0.2")]
    thread = next(thread for thread in applied["threads"] if thread["process"] == "p0.2")
    assert thread["applied"] == thread["planned"]
    assert ("p0.1/0" in applied["missing"]) == (before == 0) and applied["unplanned"] == []


def test_a_program_that_the_plan_has_nowhere_has_its_number_s_part(tmp_path: Path) -> None:
    plan = plan_of(p0_1="another", p0_2="true")
    cpus, _ = shown(plan, tmp_path, "sh", "-c", f"{SHOW}; exit 0")
    assert cpus == [cpu_of(plan, "p0.1")]


def test_children_of_one_that_stands_for_another_go_by_its_part(tmp_path: Path) -> None:
    plan = plan_of(p0_1="true", p0_2="true", p0_3="sh", p0_3_1="true", p0_3_2="grep")
    cpus, applied = shown(plan, tmp_path, "sh", "-c", f"sh -c '/bin/true; {SHOW}; exit 0'; exit 0")
    assert cpus == [cpu_of(plan, "p0.3.2")]
    assert applied["missing"] == ["p0.1/0", "p0.2/0"]


@pytest.mark.parametrize(
    ("places", "expected"),
    [([0, 1, 0, 1], [0, 1, 0]), ([1, 0, 1, 0, 1], [0, 1, 0]), ([0, 0, 1, 1], [1, 1, 1]), ([0, 1], [1, 1, 1])],
)
def test_forked_workers_beyond_the_plan_go_on_in_turn(
    tmp_path: Path, places: list[int], expected: list[int]
) -> None:
    own = Path(sys.executable).name[:15]
    plan = plan_of(**{f"p0_{number}": own for number in range(1, len(places) + 1)})
    two = [thread.cpus for thread in plan.threads[1:3]]
    threads = [
        msgspec.structs.replace(thread, cpus=two[place])
        for thread, place in zip(plan.threads[1:], places, strict=True)
    ]
    plan = msgspec.structs.replace(plan, threads=(plan.threads[0], *threads))
    children = len(places) + len(expected)
    cpus, _ = shown(plan, tmp_path, sys.executable, "-c", FORKS.format(children=children))
    assert cpus == [str(two[place][0]) for place in places + expected]


def test_forked_workers_beyond_the_plan_have_the_last_one_s_part(tmp_path: Path) -> None:
    own = Path(sys.executable).name[:15]
    plan = plan_of(p0_1=own, p0_2=own)
    cpus, applied = shown(plan, tmp_path, sys.executable, "-c", FORKS.format(children=4))
    first, second = cpu_of(plan, "p0.1"), cpu_of(plan, "p0.2")
    assert cpus == [first, second, second, second]
    assert applied["missing"] == [] and applied["unplanned"] == []
