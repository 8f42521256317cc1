"""The commands as a user meets them: help, versions, one-line errors and exit codes."""

import json
from pathlib import Path

import pytest

from tests.support.commands import one_line_error, run, succeed

pytestmark = pytest.mark.system


@pytest.mark.parametrize("prog", ["nprof", "nmap", "nlaunch", "nlab", "numaplan"])
def test_help_and_version(prog: str) -> None:
    assert b"Example" in succeed(prog, "--help")
    assert succeed(prog, "--version").startswith(b"numaplan ")


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
    assert json.loads(succeed("numaplan", "machine", "2x2", "--json"))["name"] == "2x2"
    for command in ("record", "plan", "launch", "lab"):
        succeed("numaplan", command, "--help")
