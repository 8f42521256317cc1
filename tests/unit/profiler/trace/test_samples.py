"""Samples of a trace: what is stored is what was given, whatever the values and however many."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError
from numaplan.profiler import EVENTS, LEVELS, Trace, TraceWriter
from numaplan.profiler.trace import writer as writing
from numaplan.profiler.trace.schema import COLUMNS
from tests.support.properties import examples
from tests.support.traces import PLAIN

TYPES = {name: kind for name, (kind, _value) in PLAIN.items()}
LARGEST = {"event": len(EVENTS) - 1, "level": len(LEVELS) - 1, "is_write": 1}
FEW, STORED_AT_ONCE = 100, 300

Block = dict[str, np.ndarray]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_FEW", FEW)
    monkeypatch.setattr(writing, "_ROWS", STORED_AT_ONCE)


def block(count: int, **different: int) -> Block:
    rows = np.arange(count)
    given: dict[str, Any] = {"time_ns": rows * 3, "thread": rows % 3, "addr": rows * 8, **different}
    values = {name: given.get(name, plain) for name, (_kind, plain) in PLAIN.items()}
    return {name: np.broadcast_to(value, (count,)).astype(TYPES[name]) for name, value in values.items()}


def write(path: Path, *blocks: Block) -> Path:
    with TraceWriter(path) as writer:
        for one in blocks:
            writer.add_samples(one)
        assert writer.sample_count == sum(len(one["time_ns"]) for one in blocks)
    return path


def assert_same(trace: Trace, blocks: list[Block]) -> None:
    """At once and by blocks of codes as the analysis reads them, and by plain SQL."""
    want = {name: np.concatenate([part[name] for part in blocks]) for name in COLUMNS}
    whole = trace.all_samples(list(COLUMNS))
    for size in (1 << 20, FEW):
        found = list(trace.sample_blocks(list(COLUMNS), block=size))
        for name in COLUMNS:
            for got in (np.concatenate([part[name] for part in found]), whole[name]):
                assert np.array_equal(got, want[name]) and got.dtype == want[name].dtype, name
    stores = sum(int((part["event"] == 1).sum()) for part in blocks)
    assert sum(len(part["addr"]) for part in trace.sample_blocks(["addr"], "event = 'store'")) == stores
    types = {name: kind.partition("(")[0] for name, kind, *_ in trace.rows("DESCRIBE samples")}
    assert types == {name: kind if kind.isupper() else "ENUM" for name, kind in COLUMNS.items()}
    rows = trace.rows(f"SELECT {', '.join(COLUMNS)} FROM samples")
    words = {"event": EVENTS, "level": LEVELS}
    for at, name in enumerate(COLUMNS):
        plain = want[name].tolist()
        assert [row[at] for row in rows] == [words[name][code] if name in words else code for code in plain]


@pytest.mark.parametrize("counts", [[FEW - 1], [FEW], [STORED_AT_ONCE], [50, 270], [1000], [299, 1, 1, 299]])
def test_few_and_many_stand_in_one_table(counts: list[int], tmp_path: Path) -> None:
    blocks = [block(count, level=number) for number, count in enumerate(counts)]
    with Trace.open(write(tmp_path / "t.db", *blocks)) as trace:
        tables = [name for (name,) in trace.rows("SELECT table_name FROM duckdb_tables()")]
        assert [name for name in tables if name.startswith("samples")] == ["samples"]
        assert trace.rows(
            "SELECT count(*) FROM duckdb_views() WHERE database_name = 'trace' AND NOT internal"
        ) == [(0,)]
        assert_same(trace, blocks)


def test_a_trace_without_samples_has_the_table(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db")) as trace:
        assert trace.sample_count == 0
        assert len(trace.all_samples(["addr"])["addr"]) == 0


def test_no_other_codes_are_taken(tmp_path: Path) -> None:
    with pytest.raises(IndexError):
        write(tmp_path / "t.db", block(5, event=len(EVENTS)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("varying", "packed"),
    [
        ({"addr", "thread", "event"}, set()),
        ({"addr", "phys_addr", "ip", "thread", "latency", "region"}, {"ip"}),
        ({*COLUMNS} - {"is_write"}, {"ip", "time_ns", "latency"}),
    ],
)
def test_no_more_is_compressed_than_makes_samples_small(
    varying: set[str], packed: set[str], tmp_path: Path
) -> None:
    rows = np.arange(FEW)
    one = block(FEW)
    for name in COLUMNS:
        small = name in ("ip", "time_ns", "latency")
        wide = np.array([limits(name)[0], limits(name)[1]], TYPES[name])[rows % 2]
        one[name] = (
            (rows % 2 if small else wide).astype(TYPES[name]) if name in varying else np.zeros_like(one[name])
        )
    with Trace.open(write(tmp_path / "t.db", one)) as trace:
        found = trace.rows(
            "SELECT DISTINCT column_name FROM pragma_storage_info('trace.samples') "
            "WHERE compression = 'BitPacking'"
        )
        assert {name for (name,) in found} == packed
        assert_same(trace, [one])


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
        return np.array(few, TYPES[name])[np.arange(count) * len(few) // count]
    spread = draw(st.integers(0, min(high - few[0], 1 << 62)))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    if name == "is_write":
        return random.random(count) < 0.5
    return (few[0] + random.integers(0, spread, count, endpoint=True).astype(object)).astype(TYPES[name])


def limits(name: str) -> tuple[int, int]:
    if name in LARGEST:
        return 0, LARGEST[name]
    info = np.iinfo(TYPES[name])
    return int(info.min), int(info.max)


@st.composite
def recordings(draw: st.DrawFn) -> list[Block]:
    counts = draw(st.lists(st.integers(1, 700), min_size=1, max_size=5))
    return [{name: draw(columns(name, count)) for name in COLUMNS} for count in counts]


@pytest.mark.slow
@examples(25)
@given(blocks=recordings())
def test_what_goes_in_comes_out(blocks: list[Block], tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db", *blocks)) as trace:
        assert_same(trace, blocks)


@pytest.mark.parametrize("statement", ["ALTER TABLE losses DROP time_ns", "DROP TABLE losses"])
def test_what_is_missing_is_said(tmp_path: Path, statement: str) -> None:
    """Also where another table has a column of that name."""
    import duckdb

    write(tmp_path / "t.db", block(5))
    database = duckdb.connect(str(tmp_path / "t.db"))
    database.execute(statement)
    database.close()
    with pytest.raises(UsageError, match=r"not a trace of numaplan: .*losses"):
        Trace.open(tmp_path / "t.db")
