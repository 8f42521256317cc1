"""Programs of every kind that has threads: how to build and start each, where its toolchain is here."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.outside import RANKS, Built
from tests.support.programs import PROGRAMS, kept

SOURCES = PROGRAMS / "runtimes"
PYTHON_WITH_NUMBA = os.environ.get("NUMAPLAN_NUMBA_PYTHON", sys.executable)


class NotHereError(Exception):
    """A kind's toolchain is missing; says what."""


def _tool(*names: str) -> str:
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise NotHereError(f"no {names[0]} here")


def _made(name: str, *command: str | Path) -> Path:
    """What a compiler makes under that name, in a folder of its own where it runs."""

    def make(folder: Path) -> None:
        result = subprocess.run([*command], capture_output=True, text=True, cwd=folder, check=False)
        if result.returncode:
            last = (result.stderr.strip().splitlines() or ["?"])[-1]
            raise NotHereError(f"{Path(command[0]).name} could not build it: {last}")

    return kept([name, *command], make) / name


def _native(source: str, threads: int, compilers: Sequence[str], *flags: str) -> Callable[[], Built]:
    def build() -> Built:
        compiler = _tool(*compilers)
        optimise = "-O" if compilers[0] == "rustc" else "-O1"
        name = Path(source).stem
        return Built([str(_made(name, compiler, optimise, SOURCES / source, "-o", name, *flags))], threads)

    return build


def _script(name: str, threads: int, python: str, needs: str) -> Callable[[], Built]:
    def build() -> Built:
        if subprocess.run([python, "-c", f"import {needs}"], capture_output=True, check=False).returncode:
            raise NotHereError(f"no {needs} for {python}")
        return Built([python, str(SOURCES / name)], threads, environment={"OPENBLAS_NUM_THREADS": "4"})

    return build


def _java() -> Built:
    compiled = _made("Pool.class", _tool("javac"), "-d", ".", SOURCES / "Pool.java")
    return Built([_tool("java"), "-cp", str(compiled.parent), "Pool"], 5)


def _go() -> Built:
    return Built([str(_made("machines", _tool("go"), "build", "-o", "machines", SOURCES / "machines.go"))], 4)


def _rayon() -> Built:
    cargo = _tool("cargo")

    def make(crate: Path) -> None:
        (crate / "Cargo.toml").write_text(
            '[package]\nname = "pool"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nrayon = "1"\n'
            f'[[bin]]\nname = "pool"\npath = "{SOURCES / "rayon.rs"}"\n'
        )
        result = subprocess.run(
            [cargo, "build", "-q"], capture_output=True, text=True, cwd=crate, check=False
        )
        if result.returncode:
            raise NotHereError(f"cargo could not build it: {result.stderr.strip()}")

    return Built([str(kept([cargo, SOURCES / "rayon.rs"], make) / "target" / "debug" / "pool")], 5)


def _pigz() -> Built:
    return Built([_tool("pigz"), "-p", "4", "-9", "-c"], 6, given=os.urandom(4 << 20))


def _stress() -> Built:
    return Built([_tool("stress-ng"), "--sleep", "2", "--sleep-max", "4", "-t", "3", "-q"], 9)


def _static_child() -> Built:
    """A shell, which loads the library, starts a program that cannot."""
    program = KINDS["static glibc"]().argv[0]
    return Built(["sh", "-c", f"{program}; exit 0"], 14)


def _mpi(compiler: str, runner: str) -> Callable[[], Built]:
    def build() -> Built:
        program = _made("ranks", _tool(compiler), SOURCES / "ranks.c", "-o", "ranks", "-lpthread")
        starter = [_tool(runner), "-n", str(RANKS)]
        if "openmpi" in runner:
            starter += ["--oversubscribe", "--allow-run-as-root"]
        return Built([str(program)], 4, starter)

    return build


KINDS: dict[str, Callable[[], Built]] = {
    "libgomp": _native("team.c", 6, ["gcc"], "-fopenmp"),
    "libomp": _native("team.c", 6, ["clang", "clang-14", "clang-16"], "-fopenmp"),
    "std::thread": _native("threads.cpp", 13, ["g++"], "-pthread"),
    "TBB": _native("tasks.cpp", 4, ["g++"], "-std=c++17", "-ltbb"),
    "Python and OpenBLAS": _script("blas.py", 5, sys.executable, "numpy"),
    "numba": _script("jit.py", 4, PYTHON_WITH_NUMBA, "numba"),
    "Java": _java,
    "Go": _go,
    "Rust std": _native("threads.rs", 7, ["rustc"]),
    "rayon": _rayon,
    "static glibc": _native("threads.cpp", 13, ["g++"], "-static", "-pthread"),
    "static child of a shell": _static_child,
    "static musl": _native("threads.c", 13, ["musl-gcc"], "-static"),
    "musl": _native("threads.c", 13, ["musl-gcc"]),
    "static raw clone": _native("raw.c", 5, ["gcc"], "-static"),
    "pigz": _pigz,
    "stress-ng": _stress,
    "Open MPI": _mpi("mpicc.openmpi", "mpirun.openmpi"),
    "MPICH": _mpi("mpicc.mpich", "mpirun.mpich"),
}
