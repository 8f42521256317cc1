"""Load a native part of ours."""

import ctypes
from pathlib import Path

from numaplan.common.errors import MachineLacksError


def load_native(package_file: str, name: str) -> ctypes.CDLL:
    """The library `native/NAME.so` of the package whose `__file__` (or a module's beside it) is given.

    Raises MachineLacksError when it is missing or built for another machine.
    """
    try:
        return ctypes.CDLL(str(Path(package_file).resolve().parent / "native" / f"{name}.so"))
    except OSError as error:
        raise MachineLacksError(
            f"native part missing: {error}", "reinstall, or run 'python setup.py build_ext --inplace'"
        ) from error
