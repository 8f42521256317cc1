"""A trace may be anybody's: it is read, never run."""

from pathlib import Path

import duckdb
import pytest

from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.profiler import Trace, TraceWriter
from numaplan.profiler.commands.trace import ExportCommand
from numaplan.profiler.trace import database
from numaplan.profiler.trace.schema import TABLES
from tests.support.traces import write_trace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with TraceWriter(tmp_path / "t.db") as writer:
        writer.add_rows("machine", [(Machine.load("2x2").to_json().decode(),)])
    return tmp_path / "t.db"


def change(path: Path, *statements: str) -> None:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def selected(table: str, **instead: str) -> str:
    return ", ".join(f"{instead.get(name, 'NULL')} AS {name}" for name in TABLES[table])


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "source", ["read_text('/etc/passwd')", "range(100000000000)", "read_csv('gone.csv')"]
)
def test_a_view_in_place_of_a_table_is_not_read(path: Path, table: str, source: str) -> None:
    first = next(iter(TABLES[table]))
    if "csv" in source:
        change(path, f"DROP TABLE {table}", f"CREATE VIEW {table} AS SELECT {selected(table)}")
    else:
        one = {"read_text('/etc/passwd')": "content", "range(100000000000)": "range"}[source]
        view = f"SELECT {selected(table, **{first: one})} FROM {source}"
        change(path, f"DROP TABLE {table}", f"CREATE VIEW {table} AS {view}")
    with pytest.raises(UsageError, match=r"not a trace of numaplan|cut short") as refused:
        Trace.open(path)
    assert "root:" not in str(refused.value)


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE samples_1 (word_0 UBIGINT)",),
        ("CREATE TABLE notes (a VARCHAR)",),
        ("CREATE VIEW other AS SELECT 1",),
        ("DROP TABLE losses", "CREATE TABLE losses (time_ns VARCHAR, events BIGINT)"),
        ("DROP TABLE losses", "CREATE TABLE losses (time_ns BIGINT, events STRUCT(a BIGINT))"),
        (
            "DROP TABLE losses",
            "CREATE TABLE losses (time_ns BIGINT, events BIGINT AS (length(repeat('x', 100000000))))",
        ),
        ("ALTER TABLE meta ADD COLUMN note VARCHAR",),
    ],
)
def test_only_the_tables_of_a_trace_are_accepted(path: Path, statements: tuple[str, ...]) -> None:
    change(path, *statements)
    with pytest.raises(UsageError, match="not a trace of numaplan"):
        Trace.open(path)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE threads SET name = NULL WHERE thread = 1", "its table 'threads' has gaps"),
        ("UPDATE machine SET json = NULL", "its table 'machine' has gaps"),
        ("INSERT INTO threads SELECT * FROM threads", "its threads are not numbered"),
        ("DELETE FROM threads WHERE thread = 0", "its threads are not numbered"),
        ("UPDATE regions SET region = -1", "its regions are not numbered"),
        ("UPDATE threads SET path = '0' || repeat('.1', 40000)", "'threads' has a name of 80,001 bytes"),
        ("UPDATE regions SET region = 2147483647", "its regions are not numbered"),
        ("UPDATE regions SET name = repeat('x', 70000)", "'regions' has a name of 70,000 bytes"),
        ("UPDATE regions SET thread = 2", "its regions are of threads that it has not"),
        ("UPDATE regions SET thread = -2", "its regions are of threads that it has not"),
        ("INSERT INTO calls VALUES (3, 3, 'p0', 1)", "some of its calls are not made within earlier ones"),
    ],
)
def test_tables_with_impossible_rows_are_refused(tmp_path: Path, statement: str, told: str) -> None:
    threads = [(number, "p0", f"0.{number}", 1, 1, "x", 0, -1) for number in range(2)]
    regions = [(0, "p0", "heap", "x", "", 4096, 4096, 0, 0, 0, -1)]
    path = write_trace(tmp_path / "t.db", {"time_ns": [1]}, threads, regions)
    change(path, statement)
    with pytest.raises(UsageError, match=told):
        Trace.open(path)


def test_names_of_regions_that_are_not_there_are_none(tmp_path: Path) -> None:
    regions = [(0, "p0", "heap", "x", "", 4096, 4096, 0, 0, 0, -1)]
    path = write_trace(tmp_path / "t.db", {"time_ns": [1]}, [(0, "p0", "0", 1, 1, "x", 0, -1)], regions)
    change(
        path,
        "INSERT INTO names SELECT unnest([0, 7]), -1, 'grid', '', 'a.c', 3, 'main', 0, -1",
    )
    with Trace.open(path) as trace:
        assert list(trace.source_names) == [0]


def test_its_macros_stand_for_no_function(path: Path) -> None:
    change(
        path,
        "CREATE MACRO count(x := 1) AS 7777",
        "CREATE MACRO coalesce(a, b) AS 7777",
        "CREATE MACRO enum_code(x) AS 7777",
        "CREATE MACRO main() AS TABLE SELECT * FROM range(1000000000000)",
    )
    with Trace.open(path) as trace:
        assert trace.sample_count == 0 and trace.duration_ns == 0
        assert trace.rows("SELECT count(*) FROM threads") == [(0,)]


@pytest.mark.parametrize(
    "view",
    [
        "SELECT time_ns, CAST(length(current_setting('temp_directory')) AS INTEGER) AS thread FROM samples_1",
        "SELECT time_ns, list_value(word_0) AS thread FROM samples_1, range(9)",
        "SELECT (SELECT max(a) FROM read_text('/etc/passwd') f(a)) AS time_ns FROM samples_1",
    ],
)
def test_views_like_those_of_an_old_version_are_not_run(path: Path, view: str) -> None:
    change(
        path,
        "DROP TABLE samples",
        "CREATE TABLE samples_1 (time_ns BIGINT, word_0 UBIGINT)",
        f"CREATE VIEW samples AS {view}",
    )
    with pytest.raises(UsageError, match="a view that numaplan did not write"):
        Trace.open(path)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY threads TO '{folder}/out.csv'",
        "ATTACH '{folder}/other.db'",
        "SET enable_external_access = true",
        "SET memory_limit = '1TB'",
        "LOAD httpfs",
        "INSTALL httpfs",
    ],
)
def test_nothing_else_is_reached_from_an_open_trace(path: Path, statement: str) -> None:
    with Trace.open(path) as trace, pytest.raises(UsageError):
        trace.rows(statement.format(folder=path.parent))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_an_export_reaches_one_folder(path: Path) -> None:
    folder = path.parent / "it's here"
    ExportCommand(path, folder).run()
    assert sorted(file.stem for file in folder.iterdir()) == sorted(TABLES)
    with Trace.open(path, exporting_to=folder) as trace, pytest.raises(UsageError):
        trace.rows(f"COPY threads TO '{path.parent}/out.csv'")


def test_a_question_that_takes_too_long_is_ended(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Trace.open(path) as trace:
        monkeypatch.setattr(database, "_PATIENCE", (0.01, 0.0))
        with pytest.raises(UsageError, match=r"took more than 0 s"):
            trace.rows("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b")


def test_a_small_file_of_rows_without_end_is_refused(path: Path) -> None:
    change(path, "INSERT INTO losses SELECT 1, 1 FROM range(3000000)")
    assert path.stat().st_size < 3_000_000
    with pytest.raises(UsageError, match=r"'losses' has 3,000,000 rows, more than the file has bytes"):
        Trace.open(path)


def test_what_takes_more_memory_than_any_trace_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(path, "UPDATE machine SET json = repeat('x', 100000000)")
    monkeypatch.setattr(database, "_MEMORY_MIB", (64, 64))
    with pytest.raises(UsageError, match=r"takes more than 64\.0 MiB"), Trace.open(path) as trace:
        _ = trace.machine


def test_a_name_that_is_not_utf8_is_told(path: Path) -> None:
    odd = path.with_name("x\udcff.db")
    path.rename(odd)
    with pytest.raises(UsageError, match="its name is not UTF-8"):
        Trace.open(odd)
    with pytest.raises(UsageError, match="its name is not UTF-8"), TraceWriter(odd):
        pass
