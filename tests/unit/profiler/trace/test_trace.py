"""The trace file: what is written is read, and a damaged file is refused in one line."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from numaplan.common import UsageError
from numaplan.profiler import EVENT_CODE, LEVEL_CODE, Machine, Trace, TraceWriter
from numaplan.profiler.trace.schema import TABLES


def columns(count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {
        "time_ns": np.arange(count, dtype=np.int64) * 10,
        "thread": rng.integers(0, 4, count).astype(np.int32),
        "cpu": np.full(count, -1, np.int32),
        "node": np.zeros(count, np.int32),
        "addr": rng.integers(0, 1 << 63, count).astype(np.uint64) * np.uint64(2) + np.uint64(1),
        "phys_addr": np.zeros(count, np.uint64),
        "ip": np.full(count, 2**64 - 1, np.uint64),
        "event": rng.integers(0, len(EVENT_CODE), count).astype(np.uint8),
        "is_write": rng.random(count) < 0.5,
        "level": rng.integers(0, len(LEVEL_CODE), count).astype(np.uint8),
        "latency": np.full(count, -1, np.int32),
        "region": np.zeros(count, np.int32),
        "reach": rng.integers(-1, 12, count).astype(np.int8),
    }


def write_trace(path: Path, count: int = 5000) -> dict[str, np.ndarray]:
    data = columns(count)
    with TraceWriter(path) as writer:
        writer.add_rows("machine", [(Machine.load("2x2").to_json().decode(),)])
        writer.add_rows("threads", [(t, "p0", f"0.{t}", t, 1, "x", 0, -1) for t in range(4)])
        writer.add_rows("regions", [(0, "p0", "heap", "a+0x1", "", 4096, 2**64 - 4097, 0, 1, 0, -1)])
        writer.add_samples({name: values[: count // 2] for name, values in data.items()})
        writer.add_samples({name: values[count // 2 :] for name, values in data.items()})
        writer.set_meta({"backend": "test"})
    return data


def test_round_trip_of_every_column(tmp_path: Path) -> None:
    data = write_trace(tmp_path / "t.db")
    with Trace.open(tmp_path / "t.db") as trace:
        assert trace.meta["backend"] == "test"
        assert trace.machine == Machine.load("2x2")
        assert list(trace.threads()["path"]) == ["0.0", "0.1", "0.2", "0.3"]
        assert int(trace.regions()["bytes"][0]) == 2**64 - 4097
        blocks = list(trace.sample_blocks(list(TABLES["samples"]), order="time_ns", block=1000))
        assert len(blocks) > 1
        for name, values in data.items():
            found = np.concatenate([block[name] for block in blocks])
            assert np.array_equal(found, values), name
    assert [path.name for path in tmp_path.iterdir()] == ["t.db"]


def test_where_restricts_samples(tmp_path: Path) -> None:
    data = write_trace(tmp_path / "t.db")
    with Trace.open(tmp_path / "t.db") as trace:
        found = sum(len(block["addr"]) for block in trace.sample_blocks(["addr"], where="event = 'store'"))
        assert found == int((data["event"] == EVENT_CODE["store"]).sum())
        with pytest.raises(UsageError, match="no column 'adr'"):
            list(trace.sample_blocks(["adr"]))


def test_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="stop"), TraceWriter(tmp_path / "t.db") as writer:
        writer.add_samples(columns(10))
        raise RuntimeError("stop")
    assert list(tmp_path.iterdir()) == []


def test_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder"), TraceWriter(tmp_path / "no" / "t.db"):
        pass


def test_other_files_are_refused(tmp_path: Path) -> None:
    for name, content in {"empty": b"", "text": b"hello world, this is text", "zero": bytes(1 << 16)}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError, match="not a trace"):
            Trace.open(tmp_path / name)
    with pytest.raises(UsageError, match="No such file"):
        Trace.open(tmp_path / "absent")
    import duckdb

    duckdb.connect(str(tmp_path / "other.db")).execute("CREATE TABLE a (b INT)").close()
    with pytest.raises(UsageError, match="not a trace of numaplan: it has a base table 'a'"):
        Trace.open(tmp_path / "other.db")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    write_trace(tmp_path / "t.db", 200_000)
    whole = (tmp_path / "t.db").read_bytes()
    chooser = random.Random(1)
    for length in [1, 8, 100, 4096, 8192, 12288, len(whole) - 1] + [
        chooser.randrange(len(whole)) for _ in range(15)
    ]:
        (tmp_path / "cut.db").write_bytes(whole[:length])
        with pytest.raises(UsageError):
            Trace.open(tmp_path / "cut.db")


def test_a_writer_that_is_killed_leaves_no_trace(tmp_path: Path) -> None:
    program = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[4])!r})
from tests.unit.profiler.trace.test_trace import columns
from numaplan.profiler import TraceWriter
with TraceWriter({str(tmp_path / "t.db")!r}) as writer:
    for _ in range(3):
        writer.add_samples(columns(400_000))
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9
    assert not (tmp_path / "t.db").exists()
    write_trace(tmp_path / "t.db", 100)  # what is left lying does not stand in the way
    with Trace.open(tmp_path / "t.db") as trace:
        assert trace.rows("SELECT count(*) FROM samples") == [(100,)]


def test_a_trace_that_was_there_survives_a_failure(tmp_path: Path) -> None:
    write_trace(tmp_path / "t.db", 100)
    with pytest.raises(RuntimeError, match="stop"), TraceWriter(tmp_path / "t.db") as writer:
        writer.add_samples(columns(10))
        raise RuntimeError("stop")
    with Trace.open(tmp_path / "t.db") as trace:
        assert trace.rows("SELECT count(*) FROM samples") == [(100,)]


def test_blocks_may_be_used_again_once_they_were_taken(tmp_path: Path) -> None:
    data = columns(1000)
    with TraceWriter(tmp_path / "t.db") as writer:
        for start in range(5):
            data["addr"][:] = start
            writer.add_samples(data)
        assert writer.sample_count == 5000
    with Trace.open(tmp_path / "t.db") as trace:
        found = trace.rows("SELECT addr, count(*) FROM samples GROUP BY addr ORDER BY addr")
    assert found == [(start, 1000) for start in range(5)]


@pytest.mark.parametrize("found", ["0", "11", "", "1.0", "one"])
def test_schemas_before_and_after_are_refused(tmp_path: Path, found: str) -> None:
    write_trace(tmp_path / "t.db", 10)
    import duckdb

    database = duckdb.connect(str(tmp_path / "t.db"))
    database.execute("UPDATE meta SET value = ? WHERE key = 'schema'", [found])
    database.close()
    with pytest.raises(UsageError, match="this version reads 1, 2, 3, 4, 5, 6, 7"):
        Trace.open(tmp_path / "t.db")


@pytest.mark.parametrize("schema", ["1", "2"])
def test_traces_from_before_a_column_do_not_know_it(tmp_path: Path, schema: str) -> None:
    data = write_trace(tmp_path / "t.db", 10)
    import duckdb

    database = duckdb.connect(str(tmp_path / "t.db"))
    database.execute("ALTER TABLE samples DROP reach")
    database.close()
    with pytest.raises(UsageError, match="reach"):
        Trace.open(tmp_path / "t.db")
    database = duckdb.connect(str(tmp_path / "t.db"))
    database.execute("UPDATE meta SET value = ? WHERE key = 'schema'", [schema])
    database.close()
    with Trace.open(tmp_path / "t.db") as trace:
        for found in (trace.all_samples(["reach", "addr"]), *trace.sample_blocks(["reach", "addr"], block=4)):
            assert found["reach"].dtype == np.int8 and set(found["reach"].tolist()) == {-1}
        assert np.array_equal(trace.all_samples(["addr"])["addr"], data["addr"])


def test_columns_that_came_later_need_not_be_given(tmp_path: Path) -> None:
    data = columns(10)
    del data["reach"]
    with TraceWriter(tmp_path / "t.db") as writer:
        writer.add_rows("machine", [(Machine.load("2x2").to_json().decode(),)])
        writer.add_samples(data)
    with Trace.open(tmp_path / "t.db") as trace:
        assert trace.rows("SELECT DISTINCT reach FROM samples") == [(-1,)]
    with pytest.raises(KeyError), TraceWriter(tmp_path / "t.db") as writer:
        writer.add_samples({name: values for name, values in data.items() if name != "latency"})


@pytest.mark.parametrize(
    "statement", ["ALTER TABLE samples DROP latency", "DELETE FROM meta", "DROP TABLE losses"]
)
def test_a_trace_without_all_its_parts_is_refused(tmp_path: Path, statement: str) -> None:
    write_trace(tmp_path / "t.db", 10)
    import duckdb

    database = duckdb.connect(str(tmp_path / "t.db"))
    database.execute(statement)
    database.close()
    with pytest.raises(UsageError):
        Trace.open(tmp_path / "t.db")


@pytest.mark.parametrize("value", ["", "many", "1e9", "²", "9" * 40, "3.5"])
def test_facts_that_are_no_numbers_are_refused(tmp_path: Path, value: str) -> None:
    write_trace(tmp_path / "t.db", 10)
    import duckdb

    database = duckdb.connect(str(tmp_path / "t.db"))
    database.execute("DELETE FROM meta WHERE key = 'period'")
    database.execute("INSERT INTO meta VALUES ('period', ?)", [value])
    database.close()
    with pytest.raises(UsageError, match="period is"):
        Trace.open(tmp_path / "t.db")


def test_a_part_has_only_what_lies_in_it(tmp_path: Path) -> None:
    data = write_trace(tmp_path / 'odd "name.db')
    kept = (data["time_ns"] >= 1000) & (data["time_ns"] < 30_000)
    with Trace.open(tmp_path / 'odd "name.db') as trace:
        with trace.between(1000, 30_000) as part:
            assert part.sample_count == kept.sum()
            assert np.array_equal(part.all_samples(["addr"])["addr"], data["addr"][kept])
            blocks = list(part.sample_blocks(["addr"], block=100))  # by Arrow
            assert np.array_equal(np.concatenate([block["addr"] for block in blocks]), data["addr"][kept])
            assert part.duration_ns == 29_000
            assert len(part.thread_rows) == 4
        assert trace.sample_count == 5000
        assert trace.duration_ns == 49_991


def test_counted_pages_of_an_earlier_trace_are_on_no_known_node(tmp_path: Path) -> None:
    write_trace(tmp_path / "t.db", 10)
    import duckdb

    with duckdb.connect(str(tmp_path / "t.db")) as database:
        database.execute("INSERT INTO page_use VALUES (0, 9, 1, 0, 0, 4096, 5, 6, 0, 1, 1)")
        for column in ("node", "local"):
            database.execute(f"ALTER TABLE page_use DROP COLUMN {column}")
        database.execute("UPDATE meta SET value = '8' WHERE key = 'schema'")
    with Trace.open(tmp_path / "t.db") as trace, trace.between(0, 9) as part:
        for one in (trace, part):
            assert one.rows("SELECT loads, stores, node, local FROM page_use") == [(5, 6, -1, -1)]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_trace_from_before_tables_were_added_has_none(tmp_path: Path, version: int) -> None:
    added = ["transfers", "page_use", "messages"][version - 3 :]
    write_trace(tmp_path / "t.db", 10)
    import duckdb

    with duckdb.connect(str(tmp_path / "t.db")) as database:
        for table in added:
            database.execute(f"DROP TABLE {table}")
        database.execute("UPDATE meta SET value = ? WHERE key = 'schema'", [str(version)])
    with Trace.open(tmp_path / "t.db") as trace, trace.between(0, 5) as part:
        for one in (trace, part):
            assert one.rows("SELECT writer, reader, region, start_ns, end_ns, events FROM transfers") == []
            assert one.rows("SELECT thread, region, addr, loads, stores, missed FROM page_use") == []
            assert one.rows("SELECT rank, peer, kind, bytes, count, thread FROM messages") == []
