"""The cpus that an emulated program sees: those of the machine that is named, not the host's."""

import os
from pathlib import Path

import pytest

from tests.support.commands import succeed
from tests.support.emulating import MARKS
from tests.support.programs import PROGRAMS, compiled

pytestmark = MARKS


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled(
        PROGRAMS / "recording/seen_cpus.c",
        flags=("-O1", "-D_GNU_SOURCE", "-fopenmp", "-lpthread"),
        compiler="gcc",
    )


def said(tmp_path: Path, *words: object) -> list[str]:
    command = ("nprof", "record", "--backend", "emulate", "-o", tmp_path / "t.db", *words)
    return succeed(*command).decode().splitlines()


# With --skip, most of it runs before anything is recorded; with --take, after.
@pytest.mark.parametrize(
    "part", [(), ("--skip", "40K"), ("--take", "1K", "--period", "1", "--set", "drop_runtime=no")]
)
def test_a_program_makes_its_threads_for_the_machine_that_is_named(
    program: Path, tmp_path: Path, part: tuple[str, ...]
) -> None:
    assert said(tmp_path, "--machine", "4x4", *part, "--", program) == [
        "openmp 16",
        "configured 16 16",
        "online 16 16",
        "affinity 16 16",
        "threads 16",
        "none -1",
        "set 0 3",
        "got 2 1 1",
        "inherited 2",
        "created 0",
        "inherited 1",
        "forked 2",
        "2",
    ]


def test_what_starts_it_can_leave_it_fewer(program: Path, tmp_path: Path) -> None:
    seen = said(tmp_path, "--machine", "4x4", "--", "taskset", "-c", "3-8", program)
    assert {"openmp 6", "online 16 16", "threads 6"} <= set(seen)


@pytest.mark.slow
def test_all_cpus_of_the_host_are_all_for_who_has_looked_there(tmp_path: Path) -> None:
    """As mpirun does for its ranks: hwloc tells it of the host, not of the machine that is named."""
    program = compiled(PROGRAMS / "recording/host_cpus.c", flags=("-D_GNU_SOURCE",), compiler="gcc")
    every = sorted(os.sched_getaffinity(0))
    looked = Path("/sys/devices/system/cpu/cpu0/topology/core_id")
    if not looked.exists() or len(every) > 16 or every == [0]:
        pytest.skip("needs a host of 2 to 16 cpus that tells of them in sysfs")
    asked = {
        "all": ([looked, *every], 16),
        "one": ([looked, every[0]], 1),
        "not looked": (["/proc/stat", *every], len([cpu for cpu in every if cpu < 16])),
    }
    for name, (words, count) in asked.items():
        seen = said(tmp_path, "--machine", "4x4", "--", program, *words)
        assert seen == [f"has {count}", str(count)], name


def test_it_can_be_switched_off(program: Path, tmp_path: Path) -> None:
    seen = said(tmp_path, "--machine", "4x4", "--set", "show_cpus=no", "--", program)
    assert f"openmp {len(os.sched_getaffinity(0))}" in seen
