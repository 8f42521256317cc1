"""Plain command lines of `nmap plan` are read without the command line library, and mean the same."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from numaplan.common import version
from numaplan.mapper.cli import OPTIONS, quick_request
from numaplan.mapper.plan import Plan
from numaplan.mapper.plan_request import PlanRequest


def test_plain_words() -> None:
    words = ["plan", "a.db", "b.db", "-o", "p.json", "--machine=4x2", "--seed", "7"]
    words += ["--tolerance", "0.1", "--method", "cmlb"]
    assert quick_request(words) == PlanRequest(
        traces=[Path("a.db"), Path("b.db")],
        output=Path("p.json"),
        machine="4x2",
        seed=7,
        tolerance=0.1,
        method="cmlb",
    )
    assert quick_request(["plan"]) == PlanRequest(traces=[])


@pytest.mark.parametrize(
    "line",
    [
        "",
        "show plan.json",
        "--debug plan a.db",
        "plan a.db --help",
        "plan a.db --seed",
        "plan a.db --seed x",
        "plan a.db --seed -1",
        "plan a.db -op.json",
        "plan a.db -o=p.json",
        "plan a.db --pin 0.1=0",
        "plan -- a.db",
        "plan a.db -",
        "plan a.db --tolerance wide",
    ],
)
def test_all_else_is_left_to_the_library(line: str) -> None:
    assert quick_request(line.split()) is None


def test_every_option_is_a_field_of_the_request() -> None:
    assert {field for field, _ in OPTIONS.values()} <= set(PlanRequest.__struct_fields__)


def test_numpy_leaves_the_environment_alone_while_a_trace_is_opened() -> None:
    """The thread that opens it calls getenv, which no other may change the environment under."""
    script = (
        "import os\nfrom numaplan.mapper.cli import set_environment\nset_environment()\n"
        "def touched(*words): raise SystemExit(f'changed: {words}')\n"
        "os.putenv = os.unsetenv = touched\n"
        "import numpy, numaplan.mapper.planner, numaplan.mapper.summary, numaplan.mapper.trace_workload\n"
        "import numaplan.analyzer.analysis"
    )
    environment = {key: value for key, value in os.environ.items() if "BLAS" not in key}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_both_ways_make_the_same_plan(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "comm.csv", np.ones((4, 4)) - np.eye(4), delimiter=",")
    words = ["plan", "--comm", "comm.csv", "--machine", "2x2", "--seed", "3"]
    said = []
    for module, output in (("cli", "quick.json"), ("cli_full", "full.json")):
        script = (
            f"import os, sys; from numaplan.mapper.{module} import main\n"
            "def end(code): sys.exit(code)\n"
            "os._exit = end\n"
            "try: main()\n"
            "finally: print('typer' in sys.modules, file=sys.stderr)"
        )
        command = [sys.executable, "-c", script, *words, "-o", output]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        said.append((done.stdout.replace(output, ""), done.stderr.splitlines()[-1]))
    assert said[0][0] == said[1][0]
    assert [loaded for _, loaded in said] == ["False", "True"]
    assert Plan.load(tmp_path / "quick.json").threads == Plan.load(tmp_path / "full.json").threads


def test_what_is_said_arrives_and_the_exit_code_is_that_of_the_error(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from numaplan.mapper.cli import main; main()"]
    np.savetxt(tmp_path / "comm.csv", np.ones((4, 4)) - np.eye(4), delimiter=",")
    words = ["plan", "--comm", "comm.csv", "--machine", "2x2"]
    done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "plan.json" in done.stdout
    wrong = subprocess.run([*command, "plan", "no.db"], cwd=tmp_path, capture_output=True, text=True)
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1


def test_the_version_is_that_of_the_distribution() -> None:
    import importlib.metadata

    assert version() == importlib.metadata.version("numaplan")
