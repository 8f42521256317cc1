"""The native parts of each room: where they are, and loading them."""

import ctypes
from pathlib import Path

from .errors import MachineLacksError

_ROOMS = Path(__file__).resolve().parent.parent  # all rooms lie side by side, installed or not


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
