"""Programs into which nothing can be loaded: the tracer (native/trace) binds their threads from outside."""

import os
import stat
import struct
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from numaplan.common import MachineLacksError
from numaplan.launcher.elf import ElfFacts, elf_facts

TRACER = Path(__file__).resolve().parent / "native" / "trace.elf"
LOG = "trace.log"
RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")  # as native/preload/processes.c
_PR_SET_PTRACER = 0x59616D61
_OUR_BITS = 64


def why_outside(executable: str, facts: ElfFacts | None) -> str:
    """Why the preload library cannot see this program's threads; empty when it can."""
    if gains_privileges(executable):
        return "it gains privileges"
    if facts is None:
        return ""
    if facts.bits != _OUR_BITS:
        return f"it is a {facts.bits}-bit program"
    if facts.go:
        return "Go makes its threads without libc"
    if not facts.interpreter:
        return "it is statically linked"
    return "" if _same_library(facts.interpreter) else "it is linked with another C library"


def _same_library(linker: str) -> bool:
    """Whether a program's dynamic linker is of the C library that ours was built for: Python's own."""
    ours = elf_facts(sys.executable)
    return not ours or not ours.interpreter or Path(ours.interpreter).name == Path(linker).name


def gains_privileges(executable: str) -> bool:
    """Whether the kernel starts it with other rights than ours (setuid, setgid, capabilities), libraries of
    LD_PRELOAD being left out then."""
    try:
        facts = os.stat(executable)  # noqa: PTH116
        if os.statvfs(executable).f_flag & os.ST_NOSUID:
            return False
    except OSError:
        return False
    if facts.st_mode & stat.S_ISUID and facts.st_uid not in (os.geteuid(),):
        return True
    if facts.st_mode & stat.S_ISGID and facts.st_mode & stat.S_IXGRP and facts.st_gid != os.getegid():
        return True
    with suppress(OSError):
        return bool(os.getxattr(executable, "security.capability")) and os.geteuid() != 0
    return False


def root_name(environment: Mapping[str, str]) -> str:
    """What the first process is called: its rank in an MPI job, else `p0`."""
    for name in RANKS:
        text = environment.get(name, "")
        if name == "SLURM_PROCID" and "SLURM_STEP_NUM_TASKS" not in environment:
            continue  # Slurm's batch script has one too; only srun's tasks are ranks
        if text.isdecimal() and int(text) < (1 << 32) - 2:
            return f"r{int(text)}"
    return "p0"


class Tracer:
    """A tracer that waits for its program.

    `attach` runs in the program's process before its exec. The tracer ends with the last process that it
    follows; it is never waited for, and the program goes on without it when it dies.
    """

    def __init__(self, workdir: Path, form: Path, name: str, hold: bool) -> None:
        if not TRACER.is_file():
            raise MachineLacksError(f"{TRACER.name}: the native program is not built", "run 'make setup'")
        import ctypes  # here and not above: only programs that are traced wait for it

        self._libc, self._unsigned = ctypes.CDLL(None), ctypes.c_ulong
        command = [str(TRACER), "trace", str(form), str(workdir), name, "hold" if hold else "yield"]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing)
        except OSError as error:
            raise MachineLacksError(
                f"the tracer cannot be started: {error.strerror}", "raise the limit (ulimit -n, ulimit -u)"
            ) from error

    def attach(self) -> None:
        """Let the tracer attach to the calling process; returns when it has, or cannot."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._libc.prctl(_PR_SET_PTRACER, self._unsigned(self._process.pid), 0, 0, 0)
        with suppress(OSError):
            os.write(self._process.stdin.fileno(), struct.pack("=i", os.getpid()))
            os.read(self._process.stdout.fileno(), 1)

    def started(self) -> None:
        """The program runs: nothing more is to be said to the tracer."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def ended(self, seconds: float) -> int | None:
        """Wait for the end of all that it follows; its exit code, None when that takes longer."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    @property
    def failed(self) -> bool:
        """Whether it could not attach."""
        return self._process.poll() not in (None, 0)
