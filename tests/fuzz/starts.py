"""The commands that signals are tried on, small enough to be started a thousand times."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.commands import BIN, clean_environment, emulator

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAM = ("./stencil", "4", "2048", "40")


@dataclass(frozen=True)
class Start:
    """A command line of ours, in a folder with copies of the inputs.

    makes: files and folders it leaves there, whole, if it succeeds, and otherwise perhaps; code: with which
    it ends by itself; runs: whether it runs a program, whose exit code is its own; weight: how often it is
    drawn.
    """

    words: tuple[str, ...]
    makes: tuple[str, ...] = ()
    code: int = 0
    runs: bool = False
    weight: int = 4

    @property
    def name(self) -> str:
        return " ".join(word for word in self.words if word not in PROGRAM)


def starts(inputs: Path) -> Iterator[Start]:
    """What can be started with these inputs on this machine."""
    yield from _recordings(inputs)
    yield Start(("nprof", "info", "trace.db"))
    yield Start(("nprof", "info", "--json", "trace.db"))
    yield Start(("nprof", "export", "trace.db", "--to", "tables"), ("tables",))
    yield Start(("nmap", "machine", "--json"), weight=1)
    yield Start(("nmap", "analyze", "trace.db", "--to", "matrices"), ("matrices",))
    yield Start(("nmap", "report", "trace.db", "--plan", "plan.json", "-o", "r.html"), ("r.html",))
    yield Start(("nmap", "plan", "trace.db", "--machine", "4x2", "-o", "new.json"), ("new.json",))
    yield Start(("nmap", "plan", "trace.db", "again.db", "--machine", "2x2", "-o", "new.json"), ("new.json",))
    yield Start(
        ("nmap", "check", "trace.db", "--baseline", "plan.json", "--max-regress", "900%", "--junit", "j.xml"),
        ("j.xml",),
    )
    yield Start(("nmap", "compare", "trace.db", "--machine", "4x2", "--json"))
    yield Start(("nmap", "show", "plan.json"))
    yield Start(("nmap", "diff", "plan.json", "plan.json"), weight=1)
    yield Start(("nmap", "export", "plan.json", "--format", "taskset"), weight=1)
    planned = ("nlaunch", "--plan", "plan.json", "--remap", "--report", "a.json")
    yield Start((*planned, "--", *PROGRAM), ("a.json",), runs=True, weight=8)
    yield Start((*planned, "--by", "ptrace", "--", *PROGRAM), ("a.json",), runs=True, weight=8)
    yield Start((*planned, "--watch", "0.05", "--", *PROGRAM), ("a.json",), runs=True)
    yield Start(
        (
            "nlaunch",
            "--online",
            "numaplan",
            "--plan",
            "plan.json",
            "--remap",
            "--journal",
            "j",
            "--",
            *PROGRAM,
        ),
        ("j",),
        runs=True,
    )
    yield from _labs()


def _recordings(inputs: Path) -> Iterator[Start]:
    if emulator():
        emulated = ("nprof", "record", "--backend", "emulate", "--period", "20", "-o", "t.db")
        yield Start((*emulated, "--", *PROGRAM), ("t.db",), runs=True, weight=12)
        summed = ("--runs", "2", "--summary", "s.json", "--", *PROGRAM)
        yield Start((*emulated, *summed), ("t.1.db", "t.2.db", "s.json"), runs=True)
        yield Start((*emulated, "--on-signal", "--", *PROGRAM), ("t.db",), code=2, runs=True)
    if (inputs / "perf.data").exists():
        faults = ("nprof", "record", "--backend", "faults", "-o", "t.db", "--", *PROGRAM)
        yield Start(faults, ("t.db",), runs=True, weight=8)
        yield Start(("nprof", "import", "perf.data", "-o", "t.db"), ("t.db",))


def _labs() -> Iterator[Start]:
    if subprocess.run([BIN / "nlab", "doctor"], capture_output=True, check=False).returncode:
        return
    lab = ("--machine", "2x1", "--", *PROGRAM)
    yield Start(("nlab", "run", "--counts", "c.csv", *lab), ("c.csv",), runs=True, weight=3)
    yield Start(("nlab", "run", "--plan", "small.json", *lab), runs=True, weight=2)
    yield Start(("nlab", "compare", "--repeat", "1", "--configs", "default,interleave", *lab), weight=2)


def make_inputs(folder: Path) -> None:
    """A program, a trace of it, plans from that, and a perf recording where perf works."""
    _run(folder, "cc", "-O1", "-g", "-pthread", str(EXAMPLES / "stencil.c"), "-o", "stencil")
    backend = "emulate" if emulator() else "faults"
    _run(
        folder,
        str(BIN / "nprof"),
        "record",
        "--backend",
        backend,
        "--period",
        "20",
        "-o",
        "trace.db",
        *PROGRAM,
    )
    shutil.copy(folder / "trace.db", folder / "again.db")
    for name, machine in (("plan", "4x2"), ("small", "2x1")):
        plan = ("plan", "trace.db", "--machine", machine, "-o", f"{name}.json")
        _run(folder, str(BIN / "nmap"), *plan)
    machine = subprocess.run([BIN / "nmap", "machine", "4x2", "--json"], capture_output=True, check=True)
    (folder / "machine.json").write_bytes(machine.stdout)
    perf = ["perf", "record", "-q", "-e", "page-faults", "-d", "-c", "1", "-o", "perf.data", *PROGRAM]
    done = subprocess.run(perf, cwd=folder, capture_output=True, check=False)
    if done.returncode:
        print(f"no recordings by perf: {done.stderr.decode(errors='replace').strip()}", file=sys.stderr)
        (folder / "perf.data").unlink(missing_ok=True)


def environment(temporary: Path, **more: str) -> dict[str, str]:
    """Of a start whose temporary files are to be seen."""
    return {**clean_environment(), "TMPDIR": str(temporary), **more}


def _run(folder: Path, *words: str) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr.decode(errors='replace')}"
