"""What setups share: the user's cache folder, one setup at a time, and commands that may fail."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .errors import MachineLacksError, UsageError
from .files.whole import make_folder

_OWN_CACHE = "set XDG_CACHE_HOME to a folder of your own"


def cache_folder(part: str) -> Path:
    """Where a part of numaplan keeps what it fetched (XDG_CACHE_HOME, else ~/.cache); it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "numaplan" / part


@contextmanager
def one_setup_at_a_time(folder: Path) -> Iterator[None]:
    """Create the folder, wait for another setup in it, and remove what a killed one left in `.setup-*`.

    Raises UsageError where there can be no such folder.
    """
    make_folder(folder, _OWN_CACHE)
    try:
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}", _OWN_CACHE) from error
    with lock as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for left_over in folder.glob(".setup-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        yield


def output_of(command: Sequence[str], folder: Path, problem: str, hint: str = "") -> str:
    """A command's output; raises MachineLacksError with its last line when it fails."""
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError as error:
        raise MachineLacksError(f"{problem}: {command[0]}: {error.strerror}", hint) from error
    if done.returncode:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        said = lines[-1] if lines else "no reason given"
        raise MachineLacksError(f"{problem}: {said}", hint or f"try: {' '.join(command)}")
    return done.stdout.decode(errors="replace")
