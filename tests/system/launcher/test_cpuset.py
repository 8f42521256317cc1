"""Fewer cpus than planned, by a real cgroup: refused with the reason, remapped, or named in the report."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from numaplan.machine import Machine
from numaplan.mapper import Plan
from tests.support.auto_runs import Store
from tests.support.launching import NLAUNCH, build, nlaunch
from tests.support.outside import plan_of_threads
from tests.support.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.system, pytest.mark.slow]


@pytest.fixture
def one_cpu() -> Iterator[Path]:
    """The file to which processes are added that may have the machine's first cpu alone."""
    machine = Machine.load("local")
    if len(machine.cpus) < 2:
        pytest.skip("needs two cpus")
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    roots = [
        Path(where) for _, where, kind, options, *_ in mounts if kind == "cgroup" and "cpuset" in options
    ]
    roots += [Path(where) for _, where, kind, *_ in mounts if kind == "cgroup2"]
    group = None
    for root in roots:
        with suppress(OSError):
            group = root / f"numaplan-test-{os.getpid()}"
            group.mkdir()
            (group / "cpuset.cpus").write_text(str(machine.cpus[0]))
            (group / "cpuset.mems").write_text(",".join(map(str, machine.node_ids)))
            break
        with suppress(OSError):
            group.rmdir()
        group = None
    if group is None:
        pytest.skip("no cgroup with cpusets can be made here")
    yield group / "cgroup.procs"
    until(removed, group)


def removed(group: Path) -> bool:
    """It is, once the last process in it has ended."""
    with suppress(OSError):
        group.rmdir()
    return not group.exists()


def within(group: Path, *command: object) -> subprocess.CompletedProcess[str]:
    entering = f'echo $$ > "{group}" && exec "$@"'
    words = ["sh", "-c", entering, "sh", *map(str, command)]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("flags", [(), ("-static",)])
def test_a_smaller_cpuset(tmp_path: Path, one_cpu: Path, flags: tuple[str, ...]) -> None:
    first, second = Machine.load("local").cpus[:2]
    plan = plan_of_threads([("p0", "0"), ("p0", "0.1"), ("p0", "0.2"), ("p0", "0.3")])
    program, file = build("many", *flags), tmp_path / "plan.json"
    plan.save(file)
    refused = within(one_cpu, NLAUNCH, "--no-remap", "--plan", file, program, 3)
    assert refused.returncode == 2 and refused.stdout == ""
    assert f"needs cpus that are offline or not allowed here ({second}" in refused.stderr
    fitted = within(one_cpu, NLAUNCH, "--remap", "--plan", file, program, 3)
    assert (fitted.returncode, fitted.stdout) == (0, "3 7\n")
    assert "4/4 threads as planned" in fitted.stderr
    inside = within(one_cpu, "env", "container=podman", NLAUNCH, "--plan", file, program, 3)
    assert (inside.returncode, inside.stdout) == (0, "3 7\n")
    assert f"a container with 1 of {len(Machine.load('local').cpus)} cpus ({first}): " in inside.stderr
    assert "4/4 threads as planned" in inside.stderr
    found_in_the_store(tmp_path, one_cpu, plan, program)
    later = ["sh", "-c", f'echo $$ > "{one_cpu}" && exec {program} 3']
    if flags:
        plan = plan_of_threads([("p0", "0"), ("p0", "0.1")])
        later = ["env", *later]
    result, applied = nlaunch(plan, tmp_path, later, "--strict", *(("--by", "ptrace") if flags else ()))
    assert result.returncode == 1
    reason = f"thread 0.1 is not on cpus {second}: cpu {second} was not in the thread's cpuset then"
    assert any(text.startswith(reason) for text in applied["reasons"])
    assert applied["threads"][1]["applied"] == [first]


def found_in_the_store(folder: Path, one_cpu: Path, plan: Plan, program: str) -> None:
    """In a container the plan for its host is found, fitted and taken for that of the first run."""
    store = Store(folder)
    store.put(plan, [program, "3"])
    here = ["env", f"NUMAPLAN_STORE={store.folder}"]
    inside = within(one_cpu, *here, "container=podman", NLAUNCH, "--auto=record", program, 3)
    assert (inside.returncode, inside.stdout) == (0, "3 7\n")
    assert ": the plan is fitted to them" in inside.stderr and "4/4 threads as planned" in inside.stderr
    assert "first run" not in inside.stderr and "none for this class" not in inside.stderr
    assert len(store.files()) == 1
