"""Child processes under another number than in the plan, or a step up or down: they go by what they run."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from numaplan.mapper import Plan
from tests.support.launching import build, nlaunch, plan_for
from tests.support.outside import plan_of_programs, plan_of_threads

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
CATS = """
import subprocess
def start():
    return subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
def show(*cats):
    for cat in cats:
        cat.stdin.write(b"x")
        cat.stdout.read(1)
    for cat in cats:
        status = open(f"/proc/{cat.pid}/status").read()
        print(status.partition("Cpus_allowed_list:")[2].split()[0], flush=True)
"""
AT_ONCE = """
for _ in range({helpers}):
    subprocess.run(["true"])
cats = [start() for _ in range({children})]
show(*cats)
"""
FREED = """
subprocess.run(["true"])
first = start()
show(first)
second = start()
show(second)
second.{end}
second.wait()
third = start()
show(third)
"""
EXECS_LATER = """
import os, signal
def fork(then):
    ready, began = os.pipe()
    child = os.fork()
    if not child:
        os.write(began, b"x")
        then()
    os.read(ready, 1)
    return child
def become():
    os.dup2(given, 0), os.dup2(shown, 1)
    os.read(0, 1)
    os.execvp("cat", ["cat"])
(given, give), (show, shown) = os.pipe(), os.pipe()
children = fork(become), fork(signal.pause), fork(signal.pause)
os.write(give, b"xy")
os.read(show, 1)
for child in children:
    print(open(f"/proc/{child}/status").read().partition("Cpus_allowed_list:")[2].split()[0], flush=True)
    os.kill(child, 9)
    os.wait()
"""
AFTER_A_STATIC_ONE = """
import os, signal
ready, began = os.pipe()
static = os.fork()
if not static:
    os.dup2(began, 1)
    os.execv("{program}", ["end", "hang"])
os.read(ready, 1)
{then}
os.kill(static, 9)
os.wait()
"""
OWN_MASK = (
    "while read name value; do case $name in Cpus_allowed_list:) echo $value;; esac; done </proc/self/status"
)


def cpu_of(plan: Plan, process: str) -> str:
    return str(next(thread.cpus[0] for thread in plan.threads if thread.process == process))


def placed(plan: Plan, places: list[int]) -> Plan:
    """The plan with its child processes where the first or the second of them was."""
    two = [thread.cpus for thread in plan.threads[1:3]]
    threads = [
        msgspec.structs.replace(thread, cpus=two[place])
        for thread, place in zip(plan.threads[1:], places, strict=True)
    ]
    return msgspec.structs.replace(plan, threads=(plan.threads[0], *threads))


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
    plan = plan_of_programs(p0_1="true", p0_2="grep")
    script = "/bin/true; " * before + f"{SHOW}; exit 0"
    cpus, applied = shown(plan, tmp_path, "sh", "-c", script)
    assert cpus == [cpu_of(plan, "p0.2")]
    thread = next(thread for thread in applied["threads"] if thread["process"] == "p0.2")
    assert thread["applied"] == thread["planned"]
    assert ("p0.1/0" in applied["missing"]) == (before == 0) and applied["unplanned"] == []


def test_a_program_that_the_plan_has_nowhere_has_its_number_s_part(tmp_path: Path) -> None:
    plan = plan_of_programs(p0_1="another", p0_2="true")
    cpus, _ = shown(plan, tmp_path, "sh", "-c", f"{SHOW}; exit 0")
    assert cpus == [cpu_of(plan, "p0.1")]


def test_children_of_one_that_stands_for_another_go_by_its_part(tmp_path: Path) -> None:
    plan = plan_of_programs(p0_1="true", p0_2="true", p0_3="sh", p0_3_1="true", p0_3_2="grep")
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
    plan = plan_of_programs(**{f"p0_{number}": own for number in range(1, len(places) + 1)})
    two = [thread.cpus for thread in plan.threads[1:3]]
    plan = placed(plan, places)
    children = len(places) + len(expected)
    cpus, _ = shown(plan, tmp_path, sys.executable, "-c", FORKS.format(children=children))
    assert cpus == [str(two[place][0]) for place in places + expected]


def test_forked_workers_beyond_the_plan_have_the_last_one_s_part(tmp_path: Path) -> None:
    own = Path(sys.executable).name[:15]
    plan = plan_of_programs(p0_1=own, p0_2=own)
    cpus, applied = shown(plan, tmp_path, sys.executable, "-c", FORKS.format(children=4))
    first, second = cpu_of(plan, "p0.1"), cpu_of(plan, "p0.2")
    assert cpus == [first, second, second, second]
    assert applied["missing"] == [] and applied["unplanned"] == []


def test_one_that_took_the_place_of_its_shell_has_the_part_of_the_shell_s_child(tmp_path: Path) -> None:
    plan = plan_of_programs(p0_1="sh", p0_1_1="grep")
    cpus, applied = shown(plan, tmp_path, "sh", "-c", f"{SHOW}; exit 0")
    assert cpus == [cpu_of(plan, "p0.1.1")] != [cpu_of(plan, "p0.1")]
    assert applied["missing"] == ["p0.1/0"] and applied["unplanned"] == []


def test_a_child_of_a_shell_that_gave_way_when_recorded_has_the_shell_s_part(tmp_path: Path) -> None:
    plan = plan_of_programs(p0_1="grep")
    cpus, applied = shown(plan, tmp_path, "sh", "-c", f"sh -c '{SHOW}; exit 0'; exit 0")
    assert cpus == [cpu_of(plan, "p0.1")]
    assert applied["missing"] == applied["unplanned"] == []


def test_the_part_of_a_parent_that_runs_what_the_plan_says_is_its_own(tmp_path: Path) -> None:
    argv = ["sh", "-c", 'sh -c "$1" sh "$2"; exit 0', "sh", 'sh -c "$1"; exit 0', OWN_MASK]
    alone = subprocess.run(argv, capture_output=True, check=True)
    cpus, _ = shown(plan_of_programs(p0_1="sh"), tmp_path, *argv)
    assert [cpu.encode() for cpu in cpus] == alone.stdout.split()


@pytest.mark.parametrize(("planned", "helpers"), [(0, 1), (1, 0), (0, 3), (2, 0)])
def test_children_that_live_at_a_time_have_each_a_part_of_its_own(
    tmp_path: Path, planned: int, helpers: int
) -> None:
    """Whatever was started before them, and however they come."""
    cats = [f"p0.{number}" for number in range(planned + 1, planned + 9)]
    others = [f"p0.{number}" for number in range(1, planned + 1)]
    programs = {**dict.fromkeys(others, "true"), **dict.fromkeys(cats, "cat")}
    plan = plan_of_programs(**{name.replace(".", "_"): program for name, program in programs.items()})
    plan = placed(plan, [0] * planned + [0] * 4 + [1] * 4)
    script = CATS + AT_ONCE.format(helpers=helpers, children=len(cats))
    cpus, applied = shown(plan, tmp_path, sys.executable, "-c", script)
    assert sorted(cpus) == sorted(cpu_of(plan, cat) for cat in cats)
    assert applied["missing"] == [f"{other}/0" for other in others]


@pytest.mark.parametrize("end", ["stdin.close()", "kill()"])
def test_a_part_whose_process_has_ended_is_given_again(tmp_path: Path, end: str) -> None:
    """The third child would else have that of the last of its kind."""
    plan = plan_of_programs(p0_1="cat", p0_2="cat")
    cpus, _ = shown(plan, tmp_path, sys.executable, "-c", CATS + FREED.format(end=end))
    assert cpus == [cpu_of(plan, "p0.2"), cpu_of(plan, "p0.1"), cpu_of(plan, "p0.1")]


def test_a_forked_child_that_becomes_another_program_takes_no_worker_s_part(tmp_path: Path) -> None:
    """Until it does, it runs what its parent and the workers run."""
    own = Path(sys.executable).name[:15]
    plan = placed(plan_of_programs(p0_1="cat", p0_2=own, p0_3=own), [0, 0, 1])
    cpus, applied = shown(plan, tmp_path, sys.executable, "-c", EXECS_LATER)
    assert cpus == [cpu_of(plan, f"p0.{number}") for number in (1, 2, 3)]
    assert applied["missing"] == applied["unplanned"] == []


def test_one_that_a_tracer_binds_has_no_longer_the_part_of_what_it_ran_before(tmp_path: Path) -> None:
    own = Path(sys.executable).name[:15]
    plan = plan_of_programs(p0_1="another", p0_2=own, p0_3=own)
    script = AFTER_A_STATIC_ONE.format(program=build("end", "-static"), then=FORKS.format(children=1))
    cpus, applied = shown(plan, tmp_path, sys.executable, "-c", script)
    assert cpus == [cpu_of(plan, "p0.2")]
    assert applied["missing"] == ["p0.3/0"]


@pytest.mark.parametrize("script", ["{0}; true", "{0}; {0}; true", "exec {0}", "(true; {0}); true"])
def test_a_script_starts_the_plans_program(tmp_path: Path, script: str) -> None:
    """The program that was recorded alone has its part, also where a shell waits for it."""
    program = [build("many"), "4"]
    plan = plan_for(program)
    argv = ["sh", "-c", script.format(" ".join(program))]
    result, applied = nlaunch(plan, tmp_path, argv, "--strict")
    assert result.returncode == 0, (result.stderr, applied["reasons"])
    assert len(applied["threads"]) == len(plan.threads)


def test_what_the_plans_program_starts_alike_is_another(tmp_path: Path) -> None:
    show = "print(open('/proc/self/status').read().partition('Cpus_allowed_list:')[2].split()[0])"
    argv = [sys.executable, "-c", f"import subprocess; subprocess.run([{sys.executable!r}, '-c', {show!r}])"]
    alone = subprocess.run(argv, capture_output=True, check=True)
    plan = plan_of_threads([("p0", "0")])
    plan = msgspec.structs.replace(plan, app=msgspec.structs.replace(plan.app, argv=(sys.executable,)))
    result, _ = nlaunch(plan, tmp_path, argv, "-q")
    assert result.stdout == alone.stdout
