"""Programs of every kind that has threads: how to build and start each, where its toolchain is here."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SOURCES = Path(__file__).parent / "programs" / "kinds"
PYTHON_WITH_NUMBA = os.environ.get("NUMAPLAN_NUMBA_PYTHON", sys.executable)


class NotHereError(Exception):
    """A kind's toolchain is missing; says what."""


@dataclass(frozen=True)
class Built:
    """argv; starter: what stands before nlaunch (mpirun); threads: fewest that a run must show as planned."""

    argv: Sequence[str]
    threads: int
    starter: Sequence[str] = ()
    environment: dict[str, str] = field(default_factory=dict)


def _tool(*names: str) -> str:
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise NotHereError(f"no {names[0]} here")


def _compile(folder: Path, *command: str) -> None:
    result = subprocess.run([*command], capture_output=True, text=True, cwd=folder, check=False)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["?"])[-1]
        raise NotHereError(f"{Path(command[0]).name} could not build it: {last}")


def _optimise(compiler: str) -> list[str]:
    return ["-O"] if compiler == "rustc" else ["-O1"]


def _native(source: str, threads: int, compilers: Sequence[str], *flags: str) -> Callable[[Path], Built]:
    def build(folder: Path) -> Built:
        program = folder / f"{source.replace('.', '_')}-{compilers[0]}{''.join(flags)}".replace("/", "")
        _compile(
            folder,
            _tool(*compilers),
            *_optimise(compilers[0]),
            str(SOURCES / source),
            "-o",
            str(program),
            *flags,
        )
        return Built([str(program)], threads)

    return build


def _script(name: str, threads: int, python: str, needs: str) -> Callable[[Path], Built]:
    def build(_folder: Path) -> Built:
        if subprocess.run([python, "-c", f"import {needs}"], capture_output=True, check=False).returncode:
            raise NotHereError(f"no {needs} for {python}")
        return Built([python, str(SOURCES / name)], threads, environment={"OPENBLAS_NUM_THREADS": "4"})

    return build


def _java(folder: Path) -> Built:
    _compile(folder, _tool("javac"), "-d", str(folder), str(SOURCES / "Pool.java"))
    return Built([_tool("java"), "-cp", str(folder), "Pool"], 5)


def _go(folder: Path) -> Built:
    cache = {"GOCACHE": str(folder / "cache"), "GOFLAGS": "-mod=mod"}
    os.environ.setdefault("GOCACHE", cache["GOCACHE"])
    _compile(folder, _tool("go"), "build", "-o", str(folder / "machines"), str(SOURCES / "machines.go"))
    return Built([str(folder / "machines")], 4)


def _rayon(folder: Path) -> Built:
    crate = folder / "rayon"
    (crate / "src").mkdir(parents=True, exist_ok=True)
    shutil.copy(SOURCES / "rayon.rs", crate / "src" / "main.rs")
    (crate / "Cargo.toml").write_text(
        '[package]\nname = "pool"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nrayon = "1"\n'
    )
    _compile(crate, _tool("cargo"), "build", "-q", "--release")
    return Built([str(crate / "target" / "release" / "pool")], 5)


def _pigz(folder: Path) -> Built:
    data = folder / "data"
    data.write_bytes(os.urandom(24 << 20))
    return Built([_tool("pigz"), "-p", "4", "-9", "-k", "-f", str(data)], 4)


def _stress(_folder: Path) -> Built:
    return Built([_tool("stress-ng"), "--sleep", "2", "--sleep-max", "4", "-t", "1", "-q"], 9)


def _static_child(folder: Path) -> Built:
    """A shell, which loads the library, starts a program that cannot."""
    program = KINDS["static glibc"](folder).argv[0]
    return Built(["sh", "-c", f"{program}; exit 0"], 14)


def _mpi(compiler: str, runner: str) -> Callable[[Path], Built]:
    def build(folder: Path) -> Built:
        program = folder / f"ranks-{compiler}"
        _compile(folder, _tool(compiler), str(SOURCES / "ranks.c"), "-o", str(program), "-lpthread")
        starter = [_tool(runner), "-n", "4"]
        if "openmpi" in runner:
            starter += ["--oversubscribe", "--allow-run-as-root"]
        return Built([str(program)], 4, starter)

    return build


KINDS: dict[str, Callable[[Path], Built]] = {
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
