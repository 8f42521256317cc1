"""`numaplan`: all commands under one name."""

import sys

import pytest

from numaplan.__main__ import COMMANDS, USAGE, main


def test_its_help_names_every_command() -> None:
    listed = {word.strip(",") for line in USAGE.splitlines()[2:-2] for word in line[:46].split()}
    assert set(COMMANDS) <= listed


def test_no_such_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["numaplan", "plane"])
    assert main() == 2
    assert capsys.readouterr().err == "numaplan: error: no command 'plane' — see 'numaplan --help'\n"
