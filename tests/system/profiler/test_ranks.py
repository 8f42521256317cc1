"""Ranks of jobs: Python's reader and the library's (native/preload/processes.c) name a process alike."""

import re
import subprocess
from pathlib import Path

import pytest

from numaplan.profiler import first_process, prepare, read_control
from numaplan.profiler.identity.rank import RANK_VARIABLES, SLURM_TASKS

pytestmark = pytest.mark.system
SOURCE = Path(__file__).parents[3] / "profiler/native/preload/processes.c"
LARGEST = (1 << 32) - 3

ENVIRONMENTS = [
    {},
    *({name: "3", SLURM_TASKS: "4"} for name in RANK_VARIABLES),
    {"OMPI_COMM_WORLD_RANK": "0"},
    {"OMPI_COMM_WORLD_RANK": "1", "SLURM_PROCID": "5", SLURM_TASKS: "8"},
    {"OMPI_COMM_WORLD_RANK": "none", "PMI_RANK": "2"},
    {"SLURM_PROCID": "2"},  # a batch script
    *(
        {"PMI_RANK": value}
        for value in (
            "",
            "-1",
            "x",
            "3x",
            "007",
            " 3",
            "+3",
            "-0",
            "3 ",
            f"{3:021}",
            str(LARGEST),
            str(LARGEST + 1),
            "9" * 30,
        )
    ),
]


def test_the_library_reads_the_same_variables() -> None:
    names = re.search(r"names\[\] = \{([^}]*)\}", SOURCE.read_text())
    assert names and tuple(re.findall(r'"(\w+)"', names[1])) == RANK_VARIABLES


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=str)
def test_the_library_names_the_first_process_alike(tmp_path: Path, environment: dict[str, str]) -> None:
    subprocess.run(["/bin/true"], env=prepare(tmp_path, environment), check=True)
    assert [entry.name for entry in read_control(tmp_path)] == [first_process(environment)]


def test_names() -> None:
    assert first_process({}) == first_process({"SLURM_PROCID": "2"}) == "p0"
    assert first_process({"SLURM_PROCID": "2", SLURM_TASKS: "4"}) == "r2"
