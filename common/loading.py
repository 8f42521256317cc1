"""Loading what takes time or may be missing: the rooms' native parts, and numpy."""

import ctypes
import os
from pathlib import Path

from .errors import MachineLacksError

_ROOMS = Path(__file__).resolve().parent.parent  # all rooms lie side by side, installed or not
_THREADS = "OPENBLAS_NUM_THREADS"


def native_part(room: str, name: str) -> Path:
    """Where the native part `name` (a file, a library with its ending) of a room such as "profiler" is."""
    return _ROOMS / room / "native" / name


def load_native(room: str, name: str) -> ctypes.CDLL:
    """A room's shared library; raises MachineLacksError when it is missing or of another machine."""
    try:
        return ctypes.CDLL(str(native_part(room, f"{name}.so")))
    except OSError as error:
        raise MachineLacksError(
            f"native part missing: {error}", "reinstall, or run 'python setup.py build_ext --inplace'"
        ) from error


def load_numpy() -> None:
    """Import numpy with one thread: others would only wait, and take time and memory that a job may lack."""
    given = _THREADS in os.environ
    os.environ.setdefault(_THREADS, "1")
    try:
        import numpy  # noqa: F401
    finally:
        if not given:
            del os.environ[_THREADS]  # not for the programs that we start
