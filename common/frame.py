"""How every command ends: its exit code, and errors in one line on stderr. Imports nothing that is slow."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from .errors import NumaplanError
from .interrupts import asked_to_end


def run_framed(call: Callable[[], Any], prog: str) -> int:
    """Call and return the exit code: what it returns when that is a number, 0, or that of its error."""
    with asked_to_end() as asked:
        code = _outcome(call, prog, asked)
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:  # its reader has gone: Python's own flush at exit would change the exit code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return code


def _outcome(call: Callable[[], Any], prog: str, asked: Sequence[int]) -> int:
    try:
        result = call()
        if sys.stdout is not None:  # as it is when we are started with it closed
            sys.stdout.flush()
    except NumaplanError as error:
        return fail(prog, str(error), error.exit_code)
    except KeyboardInterrupt:
        return _interrupted(prog, asked)
    except (BrokenPipeError, SystemExit):
        # The reader of our output has gone (`| head`): nothing more to say, and nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return fail(prog, "not enough memory — allow more of it (ulimit -v, the limit of a batch job)", 3)
    except Exception as error:
        if asked:  # which DuckDB, for one, tells as an error of its own
            return _interrupted(prog, asked)
        name = type(error).__name__
        return fail(prog, f"internal error: {name}: {error} — run it again with --debug and report it", 2)
    return result if isinstance(result, int) else 0


def _interrupted(prog: str, asked: Sequence[int]) -> int:
    return fail(prog, "interrupted", 128 + (asked[-1] if asked else signal.SIGINT))


def leave(code: int) -> NoReturn:
    """End this process with the code, without taking apart what the system takes back at once.

    With numpy and DuckDB loaded that takes a sixth of the time of a short command.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(code)


def fail(prog: str, text: str, code: int) -> int:
    """Say an error in one line (after its traceback with --debug) and return the code."""
    if os.environ.get("NUMAPLAN_DEBUG"):
        import traceback

        traceback.print_exc()
    with suppress(OSError):
        tell(f"{prog}: error: {printable(' '.join(text.split()))}")
    return code


def tell(*lines: str) -> None:
    """Lines for people on stderr, if there is one: in one write, for the ranks of a job share it.

    Not by print(), which writes a line and its end one after the other where stderr has no buffer.
    """
    if sys.stderr is not None and lines:
        sys.stderr.write("".join(f"{line}\n" for line in lines))


def printable(text: str) -> str:
    """The text as a terminal may be given it: names in a file must not reach it as commands."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
