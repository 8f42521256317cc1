"""The commands as a user meets them: help, versions, one-line errors and exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
pytestmark = pytest.mark.system


def run(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / str(words[0])), *map(str, words[1:])]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, check=False)


def one_line_error(result: subprocess.CompletedProcess[str], prog: str, code: int) -> str:
    assert result.returncode == code, result.stderr
    lines = [line for line in result.stderr.splitlines() if line]
    errors = [line for line in lines if line.startswith(f"{prog}: error: ")]
    assert len(errors) == 1, result.stderr
    assert "Traceback" not in result.stderr
    return errors[0]


@pytest.mark.parametrize("prog", ["nprof", "nmap", "nlaunch", "nlab", "numaplan"])
def test_help_and_version(prog: str) -> None:
    shown = run(prog, "--help")
    assert shown.returncode == 0
    assert "Example" in shown.stdout
    assert run(prog, "--version").stdout.startswith("numaplan ")


@pytest.mark.parametrize(
    "prog, words",
    [
        ("nprof", ["record"]),
        ("nprof", ["no-such-command"]),
        ("nprof", ["record", "--no-such-option", "true"]),
        ("nprof", ["record", "--period", "0", "true"]),
        ("nprof", ["record", "--backend", "magic", "true"]),
        ("nprof", ["record", "--set", "x", "true"]),
        ("nprof", ["record", "--", "/no/such/program"]),
        ("nprof", ["record", "-o", "/no/such/folder/trace.db", "true"]),
        ("nprof", ["info", "absent.db"]),
        ("nprof", ["export", "absent.db", "--to", "x"]),
        ("nmap", ["plan", "absent.db"]),
        ("nmap", ["machine", "no-such-machine"]),
        ("nmap", ["-sS", "192.0.2.1"]),
        ("nlaunch", ["--plan", "absent.json", "true"]),
        ("numaplan", ["no-such-command"]),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(prog: str, words: list[str], tmp_path: Path) -> None:
    one_line_error(run(prog, *words, cwd=tmp_path), prog, 2)
    assert list(tmp_path.iterdir()) == []


def test_the_umbrella_reaches_every_tool() -> None:
    assert json.loads(run("numaplan", "machine", "2x2", "--json").stdout)["name"] == "2x2"
    for command in ("record", "plan", "launch", "lab"):
        assert run("numaplan", command, "--help").returncode == 0
