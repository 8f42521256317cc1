"""The native solver under sanitizers: random tasks of every form, exact seats, no leak."""

import subprocess

import pytest

from tests.support.programs import PROGRAMS, REPOSITORY, sanitized

pytestmark = [pytest.mark.system, pytest.mark.slow]


def test_random_tasks_under_sanitizers() -> None:
    solver = REPOSITORY / "mapper" / "native" / "solver"
    program = sanitized(
        PROGRAMS / "mapper/solver_cases.c",
        *sorted(solver.glob("*.c")),
        sanitizer="address,undefined",
        flags=("-std=c11", f"-I{solver}", "-lm"),
    )
    result = subprocess.run([program, "20"], capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "20 cases, 0 wrong" in result.stdout
