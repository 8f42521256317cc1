"""Samples are packed into few columns, and are seen as if each column had been stored as it was given."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.profiler import EVENTS, LEVELS, Trace, TraceWriter
from numaplan.profiler.trace import sample_tables
from numaplan.profiler.trace.packing import Packing, everything
from numaplan.profiler.trace.schema import TABLES
from tests.support.properties import examples

COLUMNS = TABLES["samples"]
TYPES = {
    "time_ns": np.int64,
    "thread": np.int32,
    "cpu": np.int16,
    "node": np.int16,
    "event": np.uint8,
    "is_write": np.bool_,
    "level": np.uint8,
    "latency": np.int32,
    "region": np.int32,
}
USUAL = {"cpu": -1, "node": 1, "event": 1, "is_write": True, "level": 6, "latency": -1, "region": -1}
LARGEST = {"event": len(EVENTS) - 1, "level": len(LEVELS) - 1, "is_write": 1}

Block = dict[str, np.ndarray]


def type_of(name: str) -> Any:
    return TYPES.get(name, np.uint64)


def limits(name: str) -> tuple[int, int]:
    if name in LARGEST:
        return 0, LARGEST[name]
    info = np.iinfo(type_of(name))
    return int(info.min), int(info.max)


def block(count: int, **different: int | np.ndarray) -> Block:
    given = {**USUAL, "ip": 2**63 + 5, "phys_addr": 0, **different}
    columns = {name: np.full(count, value, type_of(name)) for name, value in given.items()}
    rows = np.arange(count)
    own = {"time_ns": rows * 3, "thread": rows % 3, "addr": rows.astype(np.uint64) * 8}
    return {name: {**own, **columns}[name].astype(type_of(name)) for name in COLUMNS}


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_tables, "FEW", 100)
    monkeypatch.setattr(sample_tables, "ROWS", 300)


def write(path: Path, *blocks: Block) -> None:
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


def assert_same(trace: Trace, blocks: list[Block]) -> None:
    """By blocks of codes as the analysis reads them, and by plain SQL."""
    want = {name: np.concatenate([part[name] for part in blocks]) for name in COLUMNS}
    for size in (1 << 20, 100):
        found = list(trace.sample_blocks(list(COLUMNS), block=size))
        for name in COLUMNS:
            got = np.concatenate([part[name] for part in found])
            assert np.array_equal(got, want[name]) and got.dtype == want[name].dtype, name
    stores = sum(int((part["event"] == 1).sum()) for part in blocks)
    assert sum(len(part["addr"]) for part in trace.sample_blocks(["addr"], "event = 'store'")) == stores
    writes = sum(int(part["is_write"].sum()) for part in blocks)
    assert sum(len(part["addr"]) for part in trace.sample_blocks(["addr"], "is_write")) == writes
    types = {name: kind.partition("(")[0] for name, kind, *_ in trace.rows("DESCRIBE samples")}
    assert types == {name: kind if kind.isupper() else "ENUM" for name, kind in COLUMNS.items()}
    rows = trace.rows(f"SELECT {', '.join(COLUMNS)} FROM samples")
    words = {"event": EVENTS, "level": LEVELS}
    for at, name in enumerate(COLUMNS):
        plain = want[name].tolist()
        assert [row[at] for row in rows] == [words[name][code] if name in words else code for code in plain]


@pytest.mark.parametrize(
    "different",
    [
        {"level": 7},
        {"is_write": 0},
        {"region": 4},
        {"cpu": 31, "node": -1},
        {"phys_addr": 2**64 - 1, "event": 0},
    ],
)
def test_what_does_not_fit_goes_into_a_further_table(different: dict[str, int], tmp_path: Path) -> None:
    blocks = [block(400), block(70), block(401, **different), block(30)]
    write(tmp_path / "t.db", *blocks)
    with Trace.open(tmp_path / "t.db") as trace:
        assert set(stored(trace)) == {"samples_1", "samples_2"}
        assert stored(trace)["samples_1"] == {"time_ns", "word_0"}
        assert trace.rows("SELECT (SELECT count(*) FROM samples_1), (SELECT count(*) FROM samples_2)") == [
            (470, 431)
        ]
        assert_same(trace, blocks)
        counted = trace.rows("SELECT event, level, count(*) FROM samples GROUP BY ALL")
        own = EVENTS[different.get("event", 1)], LEVELS[different.get("level", 6)]
        expected = dict.fromkeys([(EVENTS[1], LEVELS[6]), own], 0)
        expected[EVENTS[1], LEVELS[6]] += 500
        expected[own] += 401
        assert {(event, level): count for event, level, count in counted} == expected


def test_what_fits_goes_into_the_same_table(tmp_path: Path) -> None:
    threads = np.arange(400) % 32
    blocks = [
        block(400, thread=threads, latency=np.arange(400) - 1),
        block(500, thread=40, latency=500, addr=2**47 - 1),
    ]
    write(tmp_path / "t.db", *blocks)
    with Trace.open(tmp_path / "t.db") as trace:
        assert set(stored(trace)) == {"samples_1"}
        assert_same(trace, blocks)


@pytest.mark.parametrize("blocks", [[], [block(99)], [block(50), block(20, level=3, cpu=2**15 - 1)]])
def test_few_samples_have_one_plain_table(blocks: list[Block], tmp_path: Path) -> None:
    write(tmp_path / "t.db", *blocks)
    with Trace.open(tmp_path / "t.db") as trace:
        assert stored(trace) == {"samples": set(COLUMNS)}
        if blocks:
            assert_same(trace, blocks)
        else:
            assert trace.rows("SELECT count(*) FROM samples") == [(0,)]


@st.composite
def columns(draw: st.DrawFn, name: str, count: int) -> np.ndarray:
    """One value, a few, or any, within a range that reaches to the ends of the type or does not."""
    low, high = limits(name)
    edges = [
        value for value in (low, high, 0, -1, 1, 1 << 31, 1 << 33, 1 << 47, 1 << 63) if low <= value <= high
    ]
    values = st.one_of(
        st.sampled_from(edges), st.integers(low, high), st.integers(max(low, -1), min(high, 999))
    )
    few = draw(st.lists(values, min_size=1, max_size=4))
    if draw(st.booleans()):
        return np.array(few, type_of(name))[np.arange(count) * len(few) // count]
    spread = draw(st.integers(0, min(high - few[0], 1 << 62)))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    if name == "is_write":
        return random.random(count) < 0.5
    return (few[0] + random.integers(0, spread, count, endpoint=True).astype(object)).astype(type_of(name))


@st.composite
def recordings(draw: st.DrawFn) -> list[Block]:
    counts = draw(st.lists(st.integers(1, 700), min_size=1, max_size=5))
    return [{name: draw(columns(name, count)) for name in COLUMNS} for count in counts]


@examples(25)
@given(blocks=recordings())
def test_what_goes_in_comes_out(blocks: list[Block], tmp_path: Path) -> None:
    write(tmp_path / "t.db", *blocks)
    with Trace.open(tmp_path / "t.db") as trace:
        assert_same(trace, blocks)


def test_whatever_differs_there_are_few_tables(tmp_path: Path) -> None:
    grown = [block(120, latency=2**number, region=2**number + 1) for number in range(1, 30)]
    write(tmp_path / "t.db", *grown)
    with Trace.open(tmp_path / "t.db") as trace:
        assert 2 < len(stored(trace)) <= 16
        assert_same(trace, grown)


def test_a_packing_for_everything_holds_the_ends_of_all_types() -> None:
    packing = Packing.of(everything())
    for place in (0, 1):
        ends = {name: np.full(3, limits(name)[place], type_of(name)) for name in COLUMNS}
        words = [np.zeros(3, np.uint64 if width == 8 else np.uint32) for width in packing.widths]
        assert packing.pack(ends, 0, 3, words)
