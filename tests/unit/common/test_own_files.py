"""No command writes over what it reads, or over another of its outputs."""

import re
import shlex
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from msgspec.structs import fields

from numaplan.common import Command, CommandGroup, Option, program_files
from numaplan.lab.commands.main import COMMANDS as LAB, main as nlab
from numaplan.launcher.commands.look import LookCommand, main as look
from numaplan.launcher.commands.main import LaunchCommand, main as nlaunch
from numaplan.mapper.commands.main import COMMANDS as MAPPER, main as nmap
from numaplan.profiler.commands.main import COMMANDS as PROFILER, main as nprof
from tests.support.small_plans import HEAP, plan_of

TOOLS = {"nlab": nlab, "nlaunch": nlaunch, "nmap": nmap, "nprof": nprof, "look": look}
WRITES = re.compile(r"\b[Ww]rite\b|\bto write\b|^Append")


def commands() -> Iterator[type[Command]]:
    """The classes of all commands."""
    yield from (LaunchCommand, LookCommand)
    for room, listed in (("lab", LAB), ("mapper", MAPPER), ("profiler", PROFILER)):
        waiting = list(listed.values())
        while waiting:
            module, _, name = waiting.pop().partition(":")
            found = getattr(import_module(f"numaplan.{room}.commands.{module}"), name)
            if isinstance(found, CommandGroup):
                waiting += found.commands.values()
            else:
                yield found


def test_every_option_that_names_an_output_says_so() -> None:
    found = set()
    for command in commands():
        for field in fields(command):
            how = field.type.__metadata__[0]
            if isinstance(how, Option) and isinstance(how.help, str) and WRITES.search(how.help):
                if how.metavar in ("DIR", "FOLDER") or field.name == "update":
                    continue
                found.add(field.name)
                assert how.writes, (command, field.name)
    assert found == {"output", "report", "journal", "save", "metrics", "counts", "junit", "html", "summary"}


def test_every_option_that_names_a_file_says_so() -> None:
    for command in commands():
        for field in fields(command):
            how = field.type.__metadata__[0]
            if isinstance(how, Option) and re.search(
                r"\.(JSON|JSONL|DB|XML|HTML|CSV|PROM)\b", how.metavar or ""
            ):
                assert how.reads or how.writes or "Path" in str(field.type), (command, field.name)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan, a program, a script, and files that are only looked at by name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.execve", None)  # by which nlaunch becomes the program, and this process would
    plan_of((HEAP, "bind")).save(tmp_path / "p.json")
    shutil.copy("/bin/true", tmp_path / "prog")
    for name in ("t.db", "c.json", "s.py", "m.csv", "pins", "perf.data"):
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "link.db").symlink_to("t.db")
    return tmp_path


LINES = [
    "nmap plan t.db -o t.db",
    "nmap plan t.db -o ./t.db",
    "nmap plan t.db -o link.db",
    "nmap plan link.db -o t.db",
    "nmap plan --comm m.csv --machine 2x2 -o m.csv",
    "nmap plan t.db --pin @pins -o pins",
    "nmap plan t.db --machine c.json -o c.json",
    "nmap plan t.db --beside p.json -o p.json",
    "nmap plan . --cluster c.json -o c.json",
    "nmap report t.db -o t.db",
    "nmap report perf.data t.db -o t.db",
    "nmap report t.db --plan p.json -o p.json",
    "nmap check t.db --baseline p.json --junit t.db",
    "nmap check t.db --baseline p.json --junit p.json",
    "nmap cluster c.json -o c.json",
    "nmap cluster --hostfile pins -o pins",
    "nmap export p.json --format omp -o p.json",
    "nprof record -o ./prog -- ./prog",
    "nprof record --summary prog -- ./prog",
    "nprof record -o s.py -- sh s.py",
    "nprof record -o t.db --summary t.db -- ./prog",
    "nprof import perf.data -o perf.data",
    "nlaunch --plan p.json --report p.json ./prog",
    "nlaunch --plan p.json --report prog ./prog",
    "nlaunch --plan p.json --online excl --journal p.json ./prog",
    "nlaunch --plan p.json --online excl --save ./prog ./prog",
    "nlaunch --plan p.json --match-trace t.db --report t.db ./prog",
    "nlaunch --online excl --journal new --save ./new ./prog",
    "nlaunch --auto --report ./prog -- ./prog",
    "nlaunch --job p.json --report p.json -- ./prog",
    "look --metrics prog -- ./prog",
    "nlab run --machine 2x1 --counts prog ./prog",
    "nlab compare --machine 2x1 --junit prog ./prog",
    "nlab compare --machine 2x1 --junit new --html new ./prog",
    "nlab compare --machine c.json --html c.json ./prog",
    "nlab compare --machine 2x1 --plan p.json --junit p.json ./prog",
    "nlab cluster --job p.json --junit p.json -- ./prog",
]


@pytest.mark.parametrize("line", LINES)
def test_refused_before_anything_is_done(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    tool, *words = shlex.split(line)
    assert TOOLS[tool](words) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "would be written over" in said and said.endswith("name another file")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_output_that_is_written_unasked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = (folder / "p.json").rename("plan.json")
    text = (folder / plan).read_bytes()
    assert nmap(["plan", "--comm", "m.csv", "--machine", "2x2", "--beside", "plan.json"]) == 2
    assert "would be written over --beside plan.json" in capsys.readouterr().err
    assert (folder / plan).read_bytes() == text


def test_a_name_that_is_made_of_an_option(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy("/bin/true", folder / "prog.r0")
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "1")
    before = (folder / "prog.r0").read_bytes()
    assert nlaunch(["--plan", "p.json", "--remap", "--report", "prog.%r", "./prog.r0"]) == 2
    assert nprof(["record", "--multiprocess", "--backend", "faults", "-o", "prog", "./prog.r0"]) == 2
    assert (folder / "prog.r0").read_bytes() == before


@pytest.mark.parametrize(
    "line",
    [
        "nmap export p.json --format omp -o new",
        "nmap export p.json --format omp -o m.csv",
        "nmap export p.json --format omp -o /dev/null",
    ],
)
def test_others_are_written(line: str, folder: Path) -> None:
    tool, *words = shlex.split(line)
    assert TOOLS[tool](words) == 0
    assert {"p.json", "prog"} <= {path.name for path in folder.iterdir()}


@pytest.mark.usefixtures("folder")
def test_the_files_of_a_program() -> None:
    assert program_files(["./prog", "t.db"]) == ["./prog"]
    assert program_files(["sh", "s.py", "t.db"])[1:] == ["s.py"]
    assert program_files([]) == program_files(["./absent"]) == []
