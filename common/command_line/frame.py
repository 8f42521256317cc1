"""How every command ends: its exit code, and errors in one line on stderr. Imports nothing that is slow."""

import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TextIO

from ..errors import NumaplanError
from ..output.console import tell
from ..processes.interrupts import asked_to_end, was_interrupted

_NO_MEMORY = "not enough memory — allow more of it (ulimit -v, the limit of a batch job)"
_NO_FILES = "too many files are open — allow more of them (ulimit -n)"
_NO_FOLDER = "the current folder has been removed — change to one that is there"
_OUT_OF_MEMORY = ("can't start new thread", "Out of Memory Error")  # a stack's, DuckDB's
_TOO_MANY = (errno.EMFILE, errno.ENFILE)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_NO_WAY = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR)


def run_framed(call: Callable[[], Any], prog: str) -> int:
    """Call and return the exit code: what it returns when that is a number, 0, or that of its error."""
    _open_streams()
    asked: list[int] = []
    try:
        with asked_to_end(asked):
            code = _outcome(call, prog, asked)
    except KeyboardInterrupt:  # in the middle of its last steps
        code = _interrupted(prog, asked)
    try:
        sys.stderr.flush()
    except OSError:  # its reader has gone: Python's own flush at exit would change the exit code
        _write_nowhere(sys.stderr)
    return code


def _open_streams() -> None:
    """Where we were started with a stream closed, nobody reads it; where it lacks letters, write others.

    Programs that we start have it closed, too: what Python opens is closed by exec.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # a stream, for good
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    # In the C locale Python escapes what it could not read, which is of no help with what it cannot write.
    if isinstance(sys.stdout, io.TextIOWrapper) and (
        sys.stdout.errors == "strict" or (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
    ):
        sys.stdout.reconfigure(errors="replace")


def _write_nowhere(stream: TextIO) -> None:
    """What is left to write, and what Python would flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _outcome(call: Callable[[], Any], prog: str, asked: Sequence[int]) -> int:
    try:
        result = call()
        sys.stdout.flush()
    except NumaplanError as error:
        if was_interrupted():  # which DuckDB, for one, tells as an error of its own
            return _interrupted(prog, asked)
        if lacks_files(error):  # whatever was not to be opened, or did not start
            return fail(prog, _NO_FILES, 3)
        return fail(prog, str(error), error.exit_code)
    except KeyboardInterrupt:
        return _interrupted(prog, asked)
    except (BrokenPipeError, SystemExit):
        # The reader of our output has gone (`| head`): nothing more to say.
        _write_nowhere(sys.stdout)
        return 0
    except MemoryError:
        return fail(prog, _NO_MEMORY, 3)
    except Exception as error:
        if was_interrupted():
            return _interrupted(prog, asked)
        if any(word in str(error) for word in _OUT_OF_MEMORY):
            return fail(prog, _NO_MEMORY, 3)
        if lacks_files(error):
            return fail(prog, _NO_FILES, 3)
        if isinstance(error, FileNotFoundError) and _lacks_folder():
            return fail(prog, _NO_FOLDER, 2)
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            with suppress(OSError, ValueError):
                _write_nowhere(sys.stdout)
            where = error.filename or "the output"
            return fail(prog, f"{where}: {error.strerror} — free some space, or write elsewhere", 2)
        if isinstance(error, OSError) and error.errno in _NO_WAY and error.filename:
            what = f"{error.filename}: {error.strerror}"
            return fail(prog, f"{what} — name another, or see who may use it", 2)
        name = type(error).__name__
        return fail(prog, f"internal error: {name}: {error} — run it again with --debug and report it", 2)
    return result if isinstance(result, int) else 0


def lacks_files(error: BaseException | None) -> bool:
    """Whether it is that, or comes of it."""
    while error is not None and not (isinstance(error, OSError) and error.errno in _TOO_MANY):
        error = error.__cause__
    return error is not None


def _lacks_folder() -> bool:
    """Whether the folder we are in is gone: no relative path leads anywhere then."""
    try:
        os.getcwd()  # noqa: PTH109
    except OSError:
        return True
    return False


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
        tell(f"{prog}: error: {' '.join(text.split())}")
    return code
