"""Columns of samples: asked for as plain numbers, and taken as arrays of the types that they have today."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .schema import ADDED, COLUMNS, ENUMS, array_type

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def lacks(column: str, schema: str) -> bool:
    """Whether traces of a schema have no such column of samples."""
    return schema in ADDED.get(column, ())


def listed(columns: Sequence[str], schema: str) -> str:
    """Columns of samples as SQL that gives plain numbers; those that are not there, not known."""
    kinds = ((column, COLUMNS[column]) for column in columns)
    return ", ".join(
        f"(-1)::{kind} AS {column}" if lacks(column, schema) else _as_numbers(column, kind)
        for column, kind in kinds
    )


def _as_numbers(column: str, kind: str) -> str:
    """An SQL expression that gives a column's values, truth values or enum codes as plain numbers.

    Of the type that they have today: cpus and nodes were shorter in earlier traces.
    """
    if kind in ENUMS:
        return f"enum_code({column}) AS {column}"
    return f"{column}::{'UTINYINT' if kind == 'BOOLEAN' else kind} AS {column}"


def as_type(values: "Array", kind: str) -> "Array":
    """The values in the type that columns of this kind have."""
    return values.astype(array_type(kind), copy=False)


def of_arrow(column: Any, kind: str) -> "Array":
    """An Arrow column of numbers without gaps as an array (Arrow's own conversion would load pandas)."""
    import numpy as np

    numbers = np.dtype("uint8" if kind == "BOOLEAN" else array_type(kind))
    start = column.offset * numbers.itemsize
    return as_type(np.frombuffer(column.buffers()[1], numbers, len(column), start), kind)
