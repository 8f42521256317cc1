"""Columns that hold one value are left out of a trace's tables, and are seen as if they were there."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.profiler import EVENTS, LEVELS, Trace, TraceWriter
from numaplan.profiler.trace import sample_tables
from numaplan.profiler.trace import writer as trace_writer
from numaplan.profiler.trace.schema import TABLES

CONSTANTS = {"cpu": -1, "node": 1, "phys_addr": 0, "event": 1, "is_write": True, "level": 6, "latency": -1}
TYPES = {
    "time_ns": "i8",
    "thread": "i4",
    "cpu": "i2",
    "node": "i2",
    "event": "u1",
    "is_write": "?",
    "level": "u1",
    "latency": "i4",
    "region": "i4",
}


def block(count: int, **different: int) -> dict[str, np.ndarray]:
    given = {**CONSTANTS, "region": -1, "ip": 2**63 + 5, **different}
    columns = {name: np.full(count, value) for name, value in given.items()}
    columns |= {"time_ns": np.arange(count), "thread": np.arange(count) % 3, "addr": np.arange(count) * 8}
    return {name: columns[name].astype(TYPES.get(name, "u8")) for name in TABLES["samples"]}


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_tables, "FEW", 100)
    monkeypatch.setattr(trace_writer, "ROWS", 400)


def write(path: Path, *blocks: dict[str, np.ndarray]) -> None:
    with TraceWriter(path) as writer:
        for one in blocks:
            writer.add_samples(one)


def stored(trace: Trace) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for table, column in trace.rows(
        "SELECT c.table_name, column_name FROM duckdb_columns() c JOIN duckdb_tables() USING (table_oid)"
        " WHERE c.table_name LIKE 'samples%'"
    ):
        found.setdefault(table, set()).add(column)
    return found


@pytest.mark.parametrize(
    "different", [{}, {"level": 7}, {"is_write": 0}, {"region": 4}, {"phys_addr": 2**64 - 1, "event": 0}]
)
def test_all_columns_read_as_they_were_given(different: dict[str, int], tmp_path: Path) -> None:
    blocks = [block(400), block(400), block(401, **different), block(30)]
    write(tmp_path / "t.db", *blocks)
    with Trace.open(tmp_path / "t.db") as trace:
        kept = stored(trace)
        assert kept["samples_1"] == {"time_ns", "thread", "addr"}
        assert kept.get("samples_2", set(TABLES["samples"])) == set(TABLES["samples"])
        assert ("samples_2" in kept) == bool(different)
        for size in (1 << 20, 100):
            found = list(trace.sample_blocks(list(TABLES["samples"]), block=size))
            for name in TABLES["samples"]:
                got = np.concatenate([part[name] for part in found])
                want = np.concatenate([part[name] for part in blocks])
                assert np.array_equal(got, want) and got.dtype == want.dtype, name
        types = {name: kind for name, kind, *_ in trace.rows("DESCRIBE samples")}
        assert {name: types[name].partition("(")[0] for name in TABLES["samples"]} == {
            name: kind if kind.isupper() else "ENUM" for name, kind in TABLES["samples"].items()
        }
        counted = trace.rows("SELECT event, level, count(*) FROM samples GROUP BY ALL")
        own = EVENTS[different.get("event", 1)], LEVELS[different.get("level", 6)]
        expected = dict.fromkeys([(EVENTS[1], LEVELS[6]), own], 0)
        expected[EVENTS[1], LEVELS[6]] += 830
        expected[own] += 401
        assert {(event, level): count for event, level, count in counted} == expected


@pytest.mark.parametrize("blocks", [[], [block(99)]])
def test_few_samples_have_one_plain_table(blocks: list[dict[str, np.ndarray]], tmp_path: Path) -> None:
    write(tmp_path / "t.db", *blocks)
    with Trace.open(tmp_path / "t.db") as trace:
        assert stored(trace) == {"samples": set(TABLES["samples"])}
        assert trace.rows("SELECT count(*) FROM samples") == [(sum(len(one["addr"]) for one in blocks),)]
