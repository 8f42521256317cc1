"""Programs into which nothing can be loaded: the tracer (native/trace) binds their threads from outside."""

import os
import signal
import struct
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from numaplan.common import MachineLacksError, native_part

from .process_memory import set_memory_policy

TRACER = native_part("launcher", "trace.elf")
LOG = "trace.log"
_PR_SET_PTRACER = 0x59616D61


def start_tracer(*arguments: str) -> "subprocess.Popen[bytes]":
    """trace.elf with pipes for what is said to it and by it; raises MachineLacksError if it cannot start."""
    if not TRACER.is_file():
        raise MachineLacksError(f"{TRACER.name}: the native program is not built", "run 'make setup'")
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    try:
        return subprocess.Popen([str(TRACER), *arguments], stdin=pipe, stdout=pipe, stderr=nothing, bufsize=0)
    except OSError as error:
        raise MachineLacksError(
            f"no process can be started: {error.strerror}", "raise the limit (ulimit -n, ulimit -u)"
        ) from error


class Tracer:
    """A tracer that waits for its program.

    spread: nodes for all memory of the program; autonuma: whether the kernel may move what is left to first
    touch. `attach` runs in its process before its exec. The tracer ends with the last process that it
    follows; it is never waited for, and the program goes on without it when it dies.
    """

    def __init__(
        self,
        workdir: Path,
        table: Path,
        name: str,
        hold: bool,
        spread: Sequence[int] = (),
        autonuma: bool = False,
    ) -> None:
        import ctypes  # here and not above: only programs that are traced wait for it

        self._spread, self._autonuma = spread, autonuma
        self._libc, self._unsigned = ctypes.CDLL(None), ctypes.c_ulong
        self._process = start_tracer("trace", str(table), str(workdir), name, "hold" if hold else "yield")

    def attach(self) -> None:
        """Let the tracer attach to the calling process; returns when it has, or cannot."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._libc.prctl(_PR_SET_PTRACER, self._unsigned(self._process.pid), 0, 0, 0)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the tracer may be dead
        with suppress(OSError):
            os.write(self._process.stdin.fileno(), struct.pack("=i", os.getpid()))
            os.read(self._process.stdout.fileno(), 1)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as Popen has left it
        if self._spread or not self._autonuma:
            set_memory_policy(self._spread)

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
