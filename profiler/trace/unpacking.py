"""The reverse of packing.py for whole tables: columns out of words, in native code."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from numaplan.common import load_native

from .schema import COLUMNS, TIME, array_type

Array = np.ndarray[Any, Any]
_WORD = 64


def unpacked(
    words: Mapping[str, Array], places: Mapping[str, Sequence[int]], columns: Sequence[str]
) -> dict[str, Array]:
    """Columns of words, in their own types (codes of enums); places: of this table, from `described`.

    words: equally long contiguous arrays of 64 or 32 bits. Raises ValueError where they are not, or places
    lie outside of them.
    """
    found: dict[str, Array] = {}
    table = []
    for name in columns:
        if name == TIME:
            found[name] = words[TIME]
            continue
        base, bits, word, shift = places[name]
        form = np.dtype(array_type(COLUMNS[name]))
        if bits:
            found[name] = np.empty(len(words[TIME]), form)
            table.append(_column(words[f"word_{word}"], found[name], base, bits, shift))
        else:
            found[name] = np.full(len(words[TIME]), base, form)
    _library().samples_unpack((_Column * len(table))(*table), len(table), len(words[TIME]))
    return found


class _Column(ctypes.Structure):
    _fields_ = (
        ("words", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("base", ctypes.c_uint64),
        ("word_width", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("shift", ctypes.c_int32),
        ("bits", ctypes.c_int32),
    )


def _column(words: Array, values: Array, base: int, bits: int, shift: int) -> _Column:
    size = words.itemsize
    fits = len(words) == len(values) and words.flags.c_contiguous and size in (4, 8)
    if not (fits and 0 <= shift < 8 * size and 0 < bits <= _WORD):
        raise ValueError(f"no column of {bits} bits from {shift} on")
    whole = base & (1 << _WORD) - 1  # modulo, as two's complement is
    return _Column(words.ctypes.data, values.ctypes.data, whole, size, values.itemsize, shift, bits)


@cache
def _library() -> ctypes.CDLL:
    library = load_native("profiler", "samples")
    library.samples_unpack.argtypes = [ctypes.POINTER(_Column), ctypes.c_int64, ctypes.c_int64]
    library.samples_unpack.restype = None
    return library
