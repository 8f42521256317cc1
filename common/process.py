"""Run a user's program in the foreground: its terminal, signals and exit code pass through us untouched."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType

from numaplan.common.errors import UsageError

# Signals a user or a batch system sends to us that are meant for the program.
_FORWARDED = (
    signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT, signal.SIGCONT,
)  # fmt: skip
# The terminal sends these to the whole foreground group: the program gets its own copy, and decides.
_STOPPING = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_LATE_S = 0.2  # a busy machine lets Python's handlers wait


def find_program(argv: Sequence[str], path: str | None = None) -> str:
    """The executable file that argv[0] names (by PATH when it has no slash).

    Raises UsageError (no program given, not found, not executable).
    """
    if not argv:
        raise UsageError("no program given", "end the command with the program and its arguments")
    found = shutil.which(argv[0], path=path)
    if found is None:
        problem = "not executable" if os.path.exists(argv[0]) else "no such program"  # noqa: PTH110
        raise UsageError(f"{argv[0]}: {problem}", "check the path (./app for one in this folder)")
    return found


def exit_code_of(status: int) -> int:
    """A shell's exit code for a Popen return code: 128+signal when the program died of one."""
    return 128 - status if status < 0 else status


def run_program(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    started: Callable[[int], None] | None = None,
    before_exec: Callable[[], None] | None = None,
    pass_fds: Sequence[int] = (),
) -> int:
    """Run argv to its end and return its exit code; Ctrl-C reaches the program, not us.

    started: called with the child's pid once it runs; before_exec: called in the child, which becomes the
    program when it returns. Raises UsageError when it cannot be started.
    """
    previous: dict[int, object] = {}
    family = _Family()
    try:
        # What we were started with ignored (nohup) stays ignored in the program too.
        for chosen in (signal.SIGINT, *_FORWARDED, *_STOPPING):
            if signal.getsignal(chosen) != signal.SIG_IGN:
                previous[chosen] = signal.signal(chosen, family.handler_of(chosen))
        for descriptor in pass_fds:
            os.set_inheritable(descriptor, True)
        # What we were given open is the program's too (by MPI's starters, by make); ours closes by itself.
        child = subprocess.Popen(list(argv), env=dict(environment), close_fds=False, preexec_fn=before_exec)
        family.join(child.pid)
        if started is not None:
            started(child.pid)
        child.returncode = family.wait()
        return exit_code_of(child.returncode)
    except FileNotFoundError:
        raise UsageError(f"{argv[0]}: no such program or interpreter", "check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{argv[0]}: {reason}", "give a program that runs on this machine") from error
    finally:
        for restored, original in previous.items():
            signal.signal(restored, original)  # type: ignore[arg-type]


class _Family:
    """We and the program: signals that we pass on, and stops (Ctrl-Z) that we follow the program into."""

    def __init__(self) -> None:
        self._pid = 0
        self._early: list[int] = []
        self._asked_to_stop = False
        self._program_stopped = False
        self._continued = -_LATE_S

    def join(self, pid: int) -> None:
        """The program runs; it gets what came while it was started."""
        self._pid = pid
        while self._early:
            self._pass_on(self._early.pop(0), None)

    def handler_of(self, number: int) -> Callable[[int, FrameType | None], None]:
        """What we do with a signal: Ctrl-C is the program's alone, as it gets its own copy."""
        if number == signal.SIGINT:
            return lambda *_: None
        return self._ask_to_stop if number in _STOPPING else self._pass_on

    def wait(self) -> int:
        """The program's return code as Popen gives it; stops with it while it is stopped."""
        while True:
            _, status = os.waitpid(self._pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                return os.waitstatus_to_exitcode(status)
            self._program_stopped = True
            self._stop_together()

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGCONT:
            self._asked_to_stop = self._program_stopped = False
            self._continued = time.monotonic()
        if not self._pid:
            self._early.append(number)
            return
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _ask_to_stop(self, number: int, _frame: FrameType | None) -> None:
        self._asked_to_stop = True
        if time.monotonic() < self._continued + _LATE_S:
            # To go on was passed on late, perhaps only after the program had got this copy and stopped.
            self._pass_on(number, None)
        self._stop_together()

    def _stop_together(self) -> None:
        """Whoever waits for us must see us stopped when the program has, and not before: it may not stop."""
        if self._asked_to_stop and self._program_stopped:
            self._asked_to_stop = self._program_stopped = False
            os.kill(os.getpid(), signal.SIGSTOP)
