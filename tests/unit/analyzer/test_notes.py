"""What an analysis says: periods that differ, what cannot be known, files in two formats."""

import csv
from pathlib import Path

import duckdb
import numpy as np
import pytest

from numaplan.analyzer import analyze_trace, page_accesses, placement_summary, region_uses, write_files
from numaplan.analyzer.samples import trace_samples as samples
from numaplan.common import UsageError
from numaplan.mapper.commands.main import main as nmap
from numaplan.profiler import Trace
from tests.unit.analyzer.samples.test_trace_analysis import HEAP, STACK, Row, exchange, write


def test_events_sampled_less_often_count_for_more(tmp_path: Path) -> None:
    """Loads at period 1000 and stores at 250: each thread makes as many accesses, of another kind."""
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for time in range(4000):
        kind = time % 5
        rows.append((time * 1000, int(kind > 0), HEAP + 64 * int(rng.integers(1000)), kind > 0, 0))
    periods = {"period": 250, "periods": '{"load": 1000, "store": 250}'}
    path = write(tmp_path / "t.db", rows, (("p0", "0"), ("p0", "0.1")), meta=periods)
    with Trace.open(path) as trace:
        found = analyze_trace(trace)
    assert found.period == 250
    assert found.loads[0] == pytest.approx(found.loads[1])
    assert found.loads.sum() == pytest.approx(6400)
    assert [thread.samples for thread in found.threads] == [800, 3200]


@pytest.mark.parametrize(
    ("periods", "expected"),
    [
        ("{}", (1, 1)),
        ('{"load": 1000, "store": 250}', (4, 1)),
        ('{"load": 300, "store": 200}', (3, 2)),
        ('{"store": 2e12}', (1, 1)),
        ('{"load": 0}', (1, 1)),
        ('{"load": -5, "store": 5}', (1, 1)),
        ('{"load": 1, "store": 1e9}', (1, 1000)),
        ("nonsense", (1, 1)),
        ('["load"]', (1, 1)),
    ],
)
def test_periods_give_whole_weights(tmp_path: Path, periods: str, expected: tuple[int, int]) -> None:
    path = write(tmp_path / "t.db", exchange(HEAP, 0), meta={"period": 100, "periods": periods})
    with Trace.open(path) as trace:
        assert samples.TraceSamples(trace).access_weights == expected


@pytest.mark.parametrize(
    ("exit_code", "said"),
    [(0, None), (1, "exited with 1:"), (132, "was ended by SIGILL:"), (139, "was ended by SIGSEGV:")]
    + [(stopped, None) for stopped in (129, 130, 137, 143)]
    + [(250, "exited with 250:")],
)
def test_a_program_that_may_have_failed_is_told_first(
    tmp_path: Path, exit_code: int, said: str | None
) -> None:
    path = write(tmp_path / "t.db", exchange(HEAP, 0), meta={"exit_code": exit_code})
    with Trace.open(path) as trace:
        notes = analyze_trace(trace).notes
    assert [number for number, note in enumerate(notes) if "the recorded program" in note] == (
        [0] if said else []
    )
    assert said is None or said in notes[0]


@pytest.mark.parametrize("periods", ['{"store": 2e12}', '{"load": -5, "store": 5}', "nonsense"])
def test_periods_that_cannot_be_are_not_used_and_that_is_said(tmp_path: Path, periods: str) -> None:
    path = write(tmp_path / "t.db", exchange(HEAP, 0), meta={"period": 100, "periods": periods})
    with Trace.open(path) as trace:
        found = analyze_trace(trace)
    assert found.period == 100
    assert sum("periods by event cannot be right" in note for note in found.notes) == 1


@pytest.mark.parametrize(("event", "level"), [(200, 0), (0, 255), (255, 255)])
def test_events_that_do_not_exist_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: int, level: int
) -> None:
    """Words of packed samples can hold more than there are names for."""
    whole = Trace.all_samples

    def damaged(trace: Trace, columns: tuple[str, ...]) -> dict[str, np.ndarray]:
        found = whole(trace, columns)
        found["event"], found["level"] = found["event"].copy(), found["level"].copy()
        found["event"][3], found["level"][3] = event, level
        return found

    monkeypatch.setattr(Trace, "all_samples", damaged)
    path = write(tmp_path / "t.db", exchange(HEAP, 0))
    with Trace.open(path) as trace, pytest.raises(UsageError, match="no known event"):
        analyze_trace(trace)


@pytest.mark.parametrize("period", ["-5", "1" * 13, "many"])
def test_a_period_that_cannot_be_is_refused(tmp_path: Path, period: str) -> None:
    path = write(tmp_path / "t.db", exchange(HEAP, 0))
    with duckdb.connect(str(path)) as damaged:
        damaged.execute("UPDATE meta SET value = ? WHERE key = 'period'", [period])
    with pytest.raises(UsageError, match="period"):
        Trace.open(path)


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([(i, i % 3, HEAP + i, False, 0) for i in range(50)], "no sample is a write"),
        ([(i, i % 3, 0, True, -1) for i in range(50)], "no sample is of shared memory"),
        ([(i, i % 3, STACK + i, True, 1) for i in range(50)], "no sample is of shared memory"),
        ([(i, i % 3, HEAP + 4096 * (i % 3), True, 0) for i in range(50)], "no communication was seen"),
        ([(i * 1000, i // 20, HEAP + 64 * i, True, 0) for i in range(60)], "threads take turns"),
    ],
)
def test_what_cannot_be_known_is_said(tmp_path: Path, rows: list[Row], note: str) -> None:
    with Trace.open(write(tmp_path / "t.db", rows)) as trace:
        found = analyze_trace(trace)
        said = placement_summary(found, region_uses(trace, page_accesses(trace)))
    assert any(text.startswith(note) for text in found.notes), found.notes
    assert not any("no two" in text for text in found.notes) or note == "threads take turns"
    assert not any("uneven" in text for text in said)
    assert np.isfinite(found.comm).all() and np.isfinite(found.loads).all()


def test_files_in_graphml_hold_the_matrix_and_the_loads(tmp_path: Path) -> None:
    import networkx as nx

    with Trace.open(write(tmp_path / "t.db", exchange(HEAP, 0))) as trace:
        found = analyze_trace(trace)
    files = write_files(found, tmp_path / "graphs", [found.comm / 2], kind="graphml")
    assert [path.name for path in files] == ["comm.graphml", "comm-phase-1.graphml"]
    whole, part = (nx.read_graphml(path, node_type=int) for path in files)
    names = range(len(found.threads))
    assert np.allclose(nx.to_numpy_array(whole, nodelist=names), found.comm)
    assert np.allclose(nx.to_numpy_array(part, nodelist=names), found.comm / 2)
    assert [whole.nodes[row]["load"] for row in names] == pytest.approx(found.loads.tolist())
    assert [whole.nodes[row]["path"] for row in names] == [thread.path for thread in found.threads]


def test_files_in_parquet_say_the_same_as_in_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.parquet as pq

    path = write(tmp_path / "t.db", exchange(HEAP, 0))
    for kind in ("csv", "parquet"):
        words = ["analyze", str(path), "--to", str(tmp_path / kind), "--format", kind, "--per-phase"]
        assert nmap(words) == 0
    for one in sorted((tmp_path / "csv").iterdir()):
        table = pq.read_table(tmp_path / "parquet" / f"{one.stem}.parquet")
        lines = list(csv.reader(one.read_text().splitlines()))
        if one.stem in ("phases", "stretches", "timeline"):
            assert lines.pop(0) == table.column_names
        values = np.array([column.to_numpy() for column in table.columns], float).T
        assert np.allclose(np.array(lines, float), values, rtol=1e-8)
    assert len(list((tmp_path / "parquet").iterdir())) == len(list((tmp_path / "csv").iterdir())) >= 5
    capsys.readouterr()
    assert nmap(["analyze", str(path), "--to", str(tmp_path), "--format", "xls"]) == 2
    assert "choose from csv, parquet" in capsys.readouterr().err
