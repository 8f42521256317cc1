"""The native solver under sanitizers: random tasks of every form, exact seats, no leak."""

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.system


def test_random_tasks_under_sanitizers(repository: Path, tmp_path: Path) -> None:
    solver = repository / "mapper" / "native" / "solver"
    case = Path(__file__).parent / "programs" / "solver_cases.c"
    program = tmp_path / "solver_cases"
    flags = [
        "-std=c11",
        "-O1",
        "-g",
        "-D_GNU_SOURCE",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ]
    sources = [str(path) for path in sorted(solver.glob("*.c"))]
    command = ["gcc", *flags, f"-I{solver}", "-o", str(program), str(case), *sources, "-lm"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot find" in built.stderr:
        pytest.skip("gcc has no sanitizers here")
    assert built.returncode == 0, built.stderr
    result = subprocess.run([str(program), "50"], capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "50 cases, 0 wrong" in result.stdout
