"""A program to measure: what it needs, how it is built, and how it is started."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from numaplan.common import NumaplanError

SOURCES = Path(__file__).parent / "sources"
_DISTRIBUTION = ["/usr/bin", "/usr/games", *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))]


class ProgramLeftOutError(NumaplanError):
    """A program that cannot be had here."""


@dataclass(frozen=True)
class Program:
    """One program of the table.

    argv, build, environment: with {threads}, {build} (a folder) and others of `make_ready` filled in;
    needs: commands, or absolute patterns of files; packages: what to install for them; threads: the most it
    is started with; checked: what it prints when its own check holds, nothing where the exit code tells;
    homes: its threads keep their roles, or its memory its users, so that a plan can help; backend: with
    which it is recorded.
    """

    name: str
    kind: str
    argv: str
    needs: tuple[str, ...]
    packages: str
    build: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    threads: int = 8
    checked: str = "checked"
    homes: bool = False
    multiprocess: bool = False
    backend: str = "emulate"


@dataclass(frozen=True)
class Ready:
    """A program that can be started: its words and its whole environment."""

    program: Program
    argv: list[str]
    environment: dict[str, str]


def make_ready(program: Program, folder: Path, cpus: int) -> Ready:
    """Find and build a program for so many cpus; raises ProgramLeftOutError with what is missing."""
    path = os.pathsep.join([*_DISTRIBUTION, os.environ.get("PATH", "")])
    missing = [name for name in program.needs if not _found(name, path)]
    if missing:
        raise ProgramLeftOutError(f"{', '.join(missing)} not found", f"apt-get install {program.packages}")
    folder.mkdir(parents=True, exist_ok=True)
    filled = {
        "threads": str(min(program.threads, cpus)),
        "build": str(folder),
        "sources": str(SOURCES),
        "postgres": str(Path(shutil.which("initdb", path=path) or "").parent),
        "cluster": str(_cluster(folder)),
        "port": "26379",
    }
    chosen = {name: value.format_map(filled) for name, value in program.environment.items()}
    environment = {**os.environ, "PATH": path, **chosen}
    for command in program.build:
        _build(command.format_map(filled), folder, environment)
    argv = [word.format_map(filled) for word in program.argv.split()]
    argv[0] = shutil.which(argv[0], path=path) or argv[0]
    return Ready(program, argv, environment)


def _cluster(folder: Path) -> Path:
    """Where PostgreSQL's data are: root, as whom it does not run, may keep its folders from other users."""
    return folder / "cluster" if os.getuid() else Path("/var/tmp/numaplan-cluster")


def _found(name: str, path: str) -> bool:
    return bool(any(Path("/").glob(name[1:])) if name.startswith("/") else shutil.which(name, path=path))


def _build(command: str, folder: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise ProgramLeftOutError(f"cannot be built: {said[-1] if said else command}")
