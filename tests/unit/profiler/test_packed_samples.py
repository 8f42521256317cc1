"""All samples of a trace at once: what the words hold is what the view says."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError
from numaplan.profiler import Machine, Trace, TraceWriter
from numaplan.profiler.trace import sample_tables
from numaplan.profiler.trace.schema import ENUMS, PACKING, TABLES
from tests.support.properties import examples

KINDS = TABLES["samples"]
LIMITS = {"BIGINT": np.int64, "INTEGER": np.int32, "SMALLINT": np.int16, "UBIGINT": np.uint64}


def block(rng: np.random.Generator, count: int, wide: bool) -> dict[str, np.ndarray]:
    """Columns of small values, some of them constant, or of all that their types hold."""
    columns = {}
    for name, kind in KINDS.items():
        if kind == "BOOLEAN":
            columns[name] = rng.random(count) < 0.5
        elif kind in ENUMS:
            columns[name] = rng.integers(0, len(ENUMS[kind]) if wide else 2, count).astype(np.uint8)
        else:
            limits = np.iinfo(LIMITS[kind])
            low = 0 if limits.min == 0 else -1
            high = low + int(rng.integers(1, 40))
            values = rng.integers(low, high, count)
            if wide:
                values = rng.integers(limits.min, limits.max, count, dtype=LIMITS[kind], endpoint=True)
            columns[name] = values.astype(LIMITS[kind])
    return columns


@examples(12)
@given(seed=st.integers(0, 1 << 30), wide=st.lists(st.booleans(), min_size=1, max_size=4))
def test_samples_at_once_are_those_of_the_view(
    tmp_path_factory: pytest.TempPathFactory, seed: int, wide: list[bool]
) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("whole") / "t.db"
    blocks = [block(rng, 50, each) for each in wide]
    with pytest.MonkeyPatch.context() as patched, TraceWriter(path) as writer:
        patched.setattr(sample_tables, "FEW", 20)
        writer.add_rows("machine", [(Machine.load("2x2").to_json().decode(),)])
        writer.set_meta({"backend": "test"})
        for each in blocks:
            writer.add_samples(each)
    with Trace.open(path) as trace:
        assert PACKING in trace.meta
        found = trace.all_samples(list(KINDS))
        (seen,) = trace.sample_blocks(list(KINDS))
    for name in KINDS:
        assert found[name].dtype == seen[name].dtype
        assert np.array_equal(found[name], seen[name]), name
        assert np.array_equal(found[name], np.concatenate([each[name] for each in blocks])), name


def test_few_samples_are_read_as_they_are(tmp_path: Path) -> None:
    columns = block(np.random.default_rng(1), 10, True)
    with TraceWriter(tmp_path / "t.db") as writer:
        writer.add_rows("machine", [(Machine.load("2x2").to_json().decode(),)])
        writer.set_meta({"backend": "test"})
        writer.add_samples(columns)
    with Trace.open(tmp_path / "t.db") as trace:
        assert PACKING not in trace.meta
        found = trace.all_samples(["time_ns", "event", "is_write"])
    assert list(found) == ["time_ns", "event", "is_write"]
    for name, values in found.items():
        assert np.array_equal(values, columns[name])


@pytest.mark.parametrize(
    "place",
    [
        [0, 3, "0 FROM samples_1; COPY (SELECT 1) TO 'written'; SELECT time_ns", 0],
        [1 << 70, 0, 0, 0],
        [0, 3, 99, 0],
        [0, 3, 0, 64],
        [],
    ],
)
def test_columns_that_are_nowhere_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: list[object]
) -> None:
    """The file says where they are: no other statement and no crash may come of it."""
    monkeypatch.setattr(sample_tables, "FEW", 20)
    monkeypatch.chdir(tmp_path)
    with TraceWriter(tmp_path / "t.db") as writer:
        writer.add_rows("machine", [(Machine.load("2x2").to_json().decode(),)])
        writer.add_samples(block(np.random.default_rng(1), 50, False))
    with Trace.open(tmp_path / "t.db") as trace:
        trace.meta[PACKING] = json.dumps([{"addr": place}])
        with pytest.raises(UsageError, match="cannot be read"):
            trace.all_samples(["time_ns", "addr"])
    assert [path.name for path in tmp_path.iterdir()] == ["t.db"]
