"""`nmap plan`: its command line as a request, and what it loads."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from numaplan.common import version
from numaplan.common.command_line.parser import read_command
from numaplan.mapper.commands.plan import PlanCommand

NMAP = [sys.executable, "-c", "import sys; from numaplan.mapper.commands.main import main; sys.exit(main())"]


def test_every_kind_of_option() -> None:
    line = "a.db b.db -o p.json --machine=4x2 c.db --seed -7 --tolerance 0.1 --next-touch"
    words = [*line.split(), "--pin", "0=1", "--pin", "0.1=cpu:2"]
    assert read_command(PlanCommand, "nmap plan", words) == PlanCommand(
        traces=[Path("a.db"), Path("b.db"), Path("c.db")],
        output=Path("p.json"),
        machine="4x2",
        seed=-7,
        tolerance=0.1,
        pin=["0=1", "0.1=cpu:2"],
        next_touch=True,
    )
    assert read_command(PlanCommand, "nmap plan", []) == PlanCommand()


def test_a_plan_of_a_matrix_loads_what_it_needs(tmp_path: Path) -> None:
    """Neither duckdb nor pandas, nor what only the help needs."""
    np.savetxt(tmp_path / "comm.csv", np.ones((4, 4)) - np.eye(4), delimiter=",")
    script = (
        "import sys; from numaplan.mapper.commands.main import main\n"
        "code = main(sys.argv[1:])\n"
        "heavy = {'duckdb', 'pandas', 'scipy', 'rich', 'rich_argparse', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(f'{code} {sorted(heavy)}')"
    )
    words = ["plan", "--comm", "comm.csv", "--machine", "2x2", "--seed", "3"]
    command = [sys.executable, "-c", script, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "0 []"


def test_what_is_said_arrives_and_the_exit_code_is_that_of_the_error(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "comm.csv", np.ones((4, 4)) - np.eye(4), delimiter=",")
    words = ["plan", "--comm", "comm.csv", "--machine", "2x2"]
    done = subprocess.run([*NMAP, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "plan.json" in done.stdout
    wrong = subprocess.run([*NMAP, "plan", "no.db"], cwd=tmp_path, capture_output=True, text=True)
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1


def test_the_version_is_that_of_the_distribution() -> None:
    import importlib.metadata

    assert version() == importlib.metadata.version("numaplan")
