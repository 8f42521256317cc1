"""Run a user's program in the foreground: its terminal, signals and exit code pass through unchanged."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from ..errors import UsageError
from .dying import will_die_of
from .interrupts import begin_nothing_new, finish_first
from .signals import ReceivedSignal, Signals

# Signals a user or a batch system sends to us that are meant for the program.
_FORWARDED = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip
# These go to the whole group: the program gets its own copy, and decides.
_STOPPING = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


SHELL = "/bin/sh"


def is_for_shell(line: bytes) -> bool:
    """Whether an executable file that begins with this line is one that the kernel refuses and shells run.

    As all who start programs do (execvp): a text that names no interpreter is a script of the shell's.
    """
    return not (line.startswith(b"\x7fELF") or b"\0" in line or (line.startswith(b"#!") and line[2:].strip()))


def started_as(argv: Sequence[str], path: str | None = None) -> list[str]:
    """The command line that the kernel can start, of a script without `#!` the shell's; as found by PATH."""
    program = shutil.which(argv[0], path=path) if argv else None
    with suppress(OSError):
        if program and os.path.isfile(program):  # noqa: PTH113 (Path is slow to import)
            with open(program, "rb", buffering=0) as file:  # noqa: PTH123
                if is_for_shell(file.readline(256)):
                    return [SHELL, program, *argv[1:]]
    return list(argv)


def find_program(argv: Sequence[str], path: str | None = None) -> str:
    """The executable file that argv[0] names (by PATH when it has no slash).

    Raises UsageError (no program given, not found, not executable).
    """
    if not argv:
        raise UsageError("no program given", "end the command with the program and its arguments")
    found = shutil.which(argv[0], path=path)
    if found is None:
        problem = "not executable" if os.path.exists(argv[0]) else "no such program"  # noqa: PTH110
        raise UsageError(f"{argv[0] or repr('')}: {problem}", "check the path (./app for one in this folder)")
    return found


def ended_by(exit_code: int) -> signal.Signals | None:
    """The signal that a program died of, by an exit code as `run_program` returns it; None: of none."""
    number = exit_code - 128
    return signal.Signals(number) if number in set(signal.Signals) else None


def run_program(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    started: Callable[[int], None] | None = None,
    before_exec: Callable[[], None] | None = None,
    pass_interrupts: bool = False,
    own: Mapping[int, Callable[[], None]] | None = None,
) -> int:
    """Run argv to its end and return its exit code, 128+signal when it died of one; signals reach it, not us.

    What the terminal sends (Ctrl-C) the program gets by itself; what a process sends to us is passed on,
    SIGINT with pass_interrupts only: a process that sent it to our group would interrupt the program twice.
    started: called with the child's pid once it runs; before_exec: called in the child, which becomes the
    program when it returns; own: what is done with signals to us instead of passing them on. What asks us to
    end after the program has is held back until its caller has finished. What the program died of and the
    terminal sent to us, too, we may die of as well (`die_as_program`). Raises UsageError when it cannot be
    started, and what `started` raises.
    """
    begin_nothing_new()
    will_die_of(0)
    with Signals((*_FORWARDED, *_STOPPING, signal.SIGCONT)) as signals:
        child = _start(argv, environment, before_exec)
        passed = [n for n in _FORWARDED if n != signal.SIGINT or pass_interrupts]
        family = _Family(child.pid, signals, passed, own or {})
        if started is not None:
            started(child.pid)
        finish_first()
        status = child.returncode = family.wait()
        if -status in family.had_from_terminal:
            will_die_of(-status)
        return 128 - status if status < 0 else status


def _start(
    argv: Sequence[str], environment: Mapping[str, str], before_exec: Callable[[], None] | None
) -> "subprocess.Popen[bytes]":
    try:
        # What we were given open is the program's too (MPI's starters, make); ours closes by itself.
        return subprocess.Popen(
            started_as(argv, environment.get("PATH")),
            env=dict(environment),
            close_fds=False,
            preexec_fn=before_exec,
        )
    except FileNotFoundError:
        raise UsageError(f"{argv[0]}: no such program or interpreter", "check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{argv[0]}: {reason}", "give a program that runs on this machine") from error


class _Family:
    """We and the program: signals that we pass on, and stops (Ctrl-Z) that we follow the program into."""

    def __init__(
        self, pid: int, signals: Signals, passed: Sequence[int], own: Mapping[int, Callable[[], None]]
    ) -> None:
        self._pid, self._passed, self._own = pid, passed, own
        self._signals = signals
        self._asked_to_stop = False
        self._program_stopped = False
        self.had_from_terminal: set[int] = set()
        # Before its exec it did not receive its own copies; one that it received since comes twice, so early.
        early = self._noted(signals.received())
        for item in early:
            if item.number in own:
                own[item.number]()
            elif item.number in (*_FORWARDED, *_STOPPING, signal.SIGCONT):
                self._send(item.number)
        self._handle([item for item in early if item.number in _STOPPING])

    def wait(self) -> int:
        """The program's return code as Popen gives it; stops with it while it is stopped."""
        while True:
            status = self._status()
            if status is not None:
                self._noted(self._signals.received())
                return os.waitstatus_to_exitcode(status)
            # Whoever waits for us must see us stopped when the program has, and not before: it may not stop.
            if self._asked_to_stop and self._program_stopped and self._signals.stop():
                self._asked_to_stop = False
            self._handle(self._noted(self._signals.wait()))

    def _noted(self, received: list[ReceivedSignal]) -> list[ReceivedSignal]:
        self.had_from_terminal |= {item.number for item in received if item.by_kernel}
        return received

    def _status(self) -> int | None:
        """Whether the program is stopped now; its status when it has ended."""
        while True:
            pid, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if pid == 0:
                return None
            if not os.WIFSTOPPED(status) and not os.WIFCONTINUED(status):
                return status
            self._program_stopped = os.WIFSTOPPED(status)

    def _handle(self, received: Sequence[ReceivedSignal]) -> None:
        for place, item in enumerate(received):
            if item.number in _STOPPING:
                self._asked_to_stop = True
            elif item.number == signal.SIGCONT:
                self._asked_to_stop = False
                if not any(later.number in _STOPPING for later in received[place:]):
                    self._go_on()
            elif item.number in self._own:
                self._own[item.number]()
            elif item.number in self._passed and self._is_for_us_alone(item):
                self._send(item.number)

    def _go_on(self) -> None:
        """The order to go on may be for us alone. Ours undoes a stop that the program got just before."""
        self._send(signal.SIGCONT)
        received = self._noted(self._signals.received())
        for item in received:
            if item.number in _STOPPING:
                self._send(item.number)
        self._handle(received)

    def _is_for_us_alone(self, item: ReceivedSignal) -> bool:
        """Not what the kernel sends to our group, which the program is in, nor what it sends to its own."""
        if not item.by_kernel:
            return item.sender != self._pid
        with suppress(OSError):
            return os.getpgid(self._pid) != os.getpgrp()
        return False

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self._pid, number)
