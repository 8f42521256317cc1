"""Where a trace keeps its samples: tables without the columns that hold one value, and a view over them.

Most recordings have columns that say the same of every sample (no physical addresses, loads only, one level).
DuckDB takes as long to store such a column as any other, so a table leaves out those in which all of its
first samples agree, and the view `samples` puts their values back. Once a sample differs, the next table has
all. Traces of few samples have the one table `samples`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from numaplan.profiler.trace.schema import ENUMS, TABLES

COLUMNS = TABLES["samples"]
_ALWAYS = ("time_ns", "thread", "addr")
FEW = 122_880  # samples that the database stores in no time: one of its row groups
_LOOK = 1024  # samples that are compared before all are

Block = Mapping[str, np.ndarray[Any, Any]]


class SampleTables:
    """The statements that store samples; runs none itself."""

    def __init__(self) -> None:
        self._parts: list[dict[str, int]] = []  # of each table, the columns it lacks with their values

    def take(self, block: Block) -> tuple[list[str], dict[str, np.ndarray[Any, Any]], str]:
        """(statements to run first, the arrays to insert, statement inserting them from `incoming`).

        block: equally long arrays, not empty, one a column of the samples table.
        """
        first: list[str] = []
        if not self._parts:
            first.append(self._new(_constants(block) if len(block["time_ns"]) >= FEW else {}))
        elif not all(_holds(block[name], value) for name, value in self._parts[-1].items()):
            first.append(self._new({}))
        lacking = self._parts[-1]
        stored = {name: block[name] for name in COLUMNS if name not in lacking}
        values = ", ".join(
            _as_enum(name, COLUMNS[name]) if COLUMNS[name] in ENUMS else name for name in stored
        )
        return first, stored, f"INSERT INTO samples_{len(self._parts)} SELECT {values} FROM incoming"

    def finish(self) -> str:
        """The statement after which there is a table or view `samples` of all that was inserted."""
        if not self._parts:
            return f"CREATE TABLE samples ({_listed(COLUMNS)})"
        if self._parts == [{}]:
            return "ALTER TABLE samples_1 RENAME TO samples"
        parts = (
            f"SELECT {', '.join(_value(name, lacking) for name in COLUMNS)} FROM samples_{number}"
            for number, lacking in enumerate(self._parts, 1)
        )
        return f"CREATE VIEW samples AS {' UNION ALL '.join(parts)}"

    def _new(self, lacking: dict[str, int]) -> str:
        self._parts.append(lacking)
        kept = {name: kind for name, kind in COLUMNS.items() if name not in lacking}
        return f"CREATE TABLE samples_{len(self._parts)} ({_listed(kept)})"


def _constants(block: Block) -> dict[str, int]:
    """The columns in which all samples agree, and their values."""
    return {
        name: int(block[name][0])
        for name in COLUMNS
        if name not in _ALWAYS and _holds(block[name], block[name][0])
    }


def _holds(values: np.ndarray[Any, Any], value: Any) -> bool:
    """Whether all values are this one."""
    return bool((values[:_LOOK] == value).all()) and bool((values == value).all())


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(f'"{name}" {kind}' for name, kind in columns.items())


def _value(name: str, lacking: Mapping[str, int]) -> str:
    """A column of the view: the table's, or its only value."""
    if name not in lacking:
        return name
    kind, value = COLUMNS[name], lacking[name]
    if kind in ENUMS:
        return f"'{ENUMS[kind][value]}'::{kind} AS {name}"
    return f"CAST({value} AS {kind}) AS {name}"


def _as_enum(column: str, kind: str) -> str:
    """An SQL expression that makes codes values of an enum (one by one: twice as fast as by enum_range)."""
    cases = " ".join(f"WHEN {code} THEN '{name}'::{kind}" for code, name in enumerate(ENUMS[kind]))
    return f"CASE {column} {cases} END"
