"""Where a trace keeps its samples: tables of packed columns, and a view that reads like one plain table.

Storing a sample costs what its columns cost, whatever is in them, so they are packed (packing.py) for the
values that the first samples have. Once a sample does not fit, the next table has a packing for it; the view
`samples` is all tables one after the other. Traces of few samples have the one plain table `samples`.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from .packing import Block, Packing, described, everything, ranges_of, united
from .schema import CODES, COLUMNS, ENUMS, PACKING, TIME, array_type

FEW = 122_880  # samples that the database stores in no time
ROW_GROUP = 63 * 2048  # rows: of words of 8 bytes they fill four blocks of the database, nearly
ROWS = 4 * ROW_GROUP
_MOST_TABLES = 16
_FAST = 20  # bytes a sample that are stored as they are: ten million take 205 MB

Array = np.ndarray[Any, Any]


class Store(Protocol):
    """Runs a statement, in which `incoming` is a table of these columns."""

    def __call__(self, statement: str, incoming: Mapping[str, Array] | None = None) -> None: ...


class SampleTables:
    """Takes samples in blocks and stores them in tables by `store`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: list[dict[str, Array]] = []  # until it is known whether there are few
        self._count = 0
        self._packings: list[Packing] = []  # of each table
        self._incoming: dict[str, Array] = {}
        self._filled = 0

    def add(self, block: Block) -> None:
        """Take further samples: equally long arrays, one a column of the samples table. They are copied."""
        columns = {
            name: np.ascontiguousarray(block[name], array_type(kind)) for name, kind in COLUMNS.items()
        }
        self._count += len(columns[TIME])
        if self._packings:
            self._put(columns)
        elif self._count < FEW:
            self._held.append({name: values.copy() for name, values in columns.items()})
        else:
            self._held.append(columns)
            whole, self._held = _joined(self._held), []
            self._begin(Packing.of(ranges_of(whole)))
            self._put(whole)

    def finish(self) -> None:
        """Store what is left: after it there is a table or view `samples`."""
        if not self._packings:
            self._store(f"CREATE TABLE samples ({_listed(COLUMNS)})")
            if self._held:
                values = ", ".join(_as_enum(name, kind) for name, kind in COLUMNS.items())
                self._store(f"INSERT INTO samples SELECT {values} FROM incoming", _joined(self._held))
            return
        self._flush()
        fields = [packing.fields for packing in self._packings]
        self._view("samples", [{field.name: field.sql for field in part} for part in fields])
        self._view(CODES, [{field.name: field.code_sql for field in part} for part in fields])

    def _view(self, name: str, parts: list[dict[str, str]]) -> None:
        """Make a view of all tables; parts: SQL of the columns that each has packed."""
        selects = (
            f"SELECT {', '.join(part.get(column, column) for column in COLUMNS)} FROM samples_{number}"
            for number, part in enumerate(parts, 1)
        )
        self._store(f"CREATE VIEW {name} AS {' UNION ALL '.join(selects)}")
        told = described(self._packings)  # for those who take the words as they are
        self._store(f"INSERT INTO meta VALUES ('{PACKING}', '{told}')")

    def _begin(self, packing: Packing) -> None:
        """Make a table for this packing."""
        self._packings.append(packing)
        small = 8 + sum(packing.widths) <= _FAST
        # Times take a quarter when compressed, for as long again; words of much content gain nothing.
        columns = {TIME: f"{COLUMNS[TIME]} USING COMPRESSION {'uncompressed' if small else 'bitpacking'}"}
        for number, width in enumerate(packing.widths):
            columns[f"word_{number}"] = (
                f"{'UBIGINT' if width == 8 else 'UINTEGER'} USING COMPRESSION uncompressed"
            )
        self._store(f"CREATE TABLE samples_{len(self._packings)} ({_listed(columns)})")
        self._incoming = {TIME: np.empty(ROWS, np.int64)}
        for number, width in enumerate(packing.widths):
            self._incoming[f"word_{number}"] = np.empty(ROWS, np.uint64 if width == 8 else np.uint32)

    def _put(self, block: Mapping[str, Array]) -> None:
        at, count = 0, len(block[TIME])
        while at < count:
            stop = min(count, at + ROWS - self._filled)
            packing = self._packings[-1]
            words = [values[self._filled :] for name, values in self._incoming.items() if name != TIME]
            if packing.pack(block, at, stop, words):
                self._incoming[TIME][self._filled : self._filled + stop - at] = block[TIME][at:stop]
                self._filled += stop - at
                at = stop
                if self._filled == ROWS:
                    self._flush()
            else:
                self._flush()
                last = len(self._packings) + 1 == _MOST_TABLES
                self._begin(
                    Packing.of(everything() if last else united(packing.ranges, ranges_of(block, at)))
                )

    def _flush(self) -> None:
        if self._filled:
            incoming = {name: values[: self._filled] for name, values in self._incoming.items()}
            self._store(f"INSERT INTO samples_{len(self._packings)} SELECT * FROM incoming", incoming)
            self._filled = 0


def _joined(blocks: list[dict[str, Array]]) -> dict[str, Array]:
    if len(blocks) == 1:
        return blocks[0]
    return {name: np.concatenate([block[name] for block in blocks]) for name in COLUMNS}


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(f'"{name}" {kind}' for name, kind in columns.items())


def _as_enum(column: str, kind: str) -> str:
    """An SQL expression that makes codes values of an enum (one by one: twice as fast as by enum_range)."""
    if kind not in ENUMS:
        return column
    cases = " ".join(f"WHEN {code} THEN '{name}'::{kind}" for code, name in enumerate(ENUMS[kind]))
    return f"CASE {column} {cases} END"
