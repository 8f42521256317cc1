"""Run a user's program in the foreground: its terminal, signals and exit code pass through us untouched."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType

from numaplan.common.errors import UsageError

# Signals a user or a batch system sends to us that are meant for the program.
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)


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
    child: subprocess.Popen[bytes] | None = None

    def forward(number: int, _frame: FrameType | None) -> None:
        if child is not None:
            with suppress(ProcessLookupError):
                os.kill(child.pid, number)

    try:
        # The terminal sends SIGINT to the whole foreground group: the program gets its own copy.
        # What we were started with ignored (nohup) stays ignored in the program too.
        wanted = [
            number for number in (signal.SIGINT, *_FORWARDED) if signal.getsignal(number) != signal.SIG_IGN
        ]
        for chosen in wanted:
            handler = forward if chosen != signal.SIGINT else (lambda *_: None)
            previous[chosen] = signal.signal(chosen, handler)
        for descriptor in pass_fds:
            os.set_inheritable(descriptor, True)
        # What we were given open is the program's too (by MPI's starters, by make); ours closes by itself.
        child = subprocess.Popen(list(argv), env=dict(environment), close_fds=False, preexec_fn=before_exec)
        if started is not None:
            started(child.pid)
        return exit_code_of(child.wait())
    except FileNotFoundError:
        raise UsageError(f"{argv[0]}: no such program or interpreter", "check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{argv[0]}: {reason}", "give a program that runs on this machine") from error
    finally:
        for restored, original in previous.items():
            signal.signal(restored, original)  # type: ignore[arg-type]
