"""The private folder of a recording, beside its output."""

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from numaplan.common import UsageError, check_output, temporary_folder

from ..trace.database import quoted

_LOCK = "lock"  # held as long as its owner lives, also on file systems that hosts share


@contextmanager
def workdir(output: Path, inputs: Sequence[str] = ()) -> Iterator[Path]:
    """A private folder beside the output: on the disk that must hold the trace, and known to be writable.

    Those that killed recordings of this output left are removed. Raises UsageError, also where the output is
    one of the files `inputs`.
    """
    check_output(output, inputs, database=True)
    quoted(output)  # which can then be opened as a database
    prefix = f".{output.name}."
    for left in output.parent.glob(f"{prefix}*/{_LOCK}"):
        _remove_if_left(left)
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(temporary_folder(prefix, output.parent))
        except OSError as error:
            raise UsageError(
                f"{output}: cannot be written: {error.strerror}", "choose a folder that is writable"
            ) from error
        held = _locked(folder / _LOCK, os.O_CREAT)
        try:
            yield folder
        finally:
            if held is not None:
                os.close(held)


def _remove_if_left(lock: Path) -> None:
    held = _locked(lock)
    if held is not None:
        shutil.rmtree(lock.parent, ignore_errors=True)
        os.close(held)


def _locked(path: Path, flags: int = 0) -> int | None:
    """An open file, locked until it is closed; None where somebody else has it, or locks do not work."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    except OSError:
        return None
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return file
    os.close(file)
    return None
