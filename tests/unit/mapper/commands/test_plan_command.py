"""`nmap plan` that fails: its trace may still be being opened."""

import threading
from pathlib import Path

import pytest

from numaplan.mapper.commands.main import main
from numaplan.profiler import EVENT_CODE
from tests.support.traces import write_trace


@pytest.mark.parametrize("option", [["--method", "nonsense"], ["--machine", "nonsense"], ["--nodes", "9"]])
def test_nobody_is_in_the_database_any_more(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else Python is taken apart under a thread of the database, which ends the process by a signal."""
    threads = [(0, "p0", "0", 1, 1, "t", 0, -1), (1, "p0", "0.1", 2, 1, "t", 0, -1)]
    samples = {"time_ns": range(100), "thread": [i % 2 for i in range(100)], "addr": 0x1000, "is_write": True}
    trace = write_trace(tmp_path / "t.db", samples, threads)
    before = threading.enumerate()  # those that others left may end meanwhile
    assert main(["plan", str(trace), "-o", str(tmp_path / "plan.json"), *option]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert set(threading.enumerate()) <= set(before)
    assert [path.name for path in tmp_path.iterdir()] == ["t.db"]


def test_first_touches_alone_make_no_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan of them says nothing of who works together: it was worse than none, and looked like one."""
    threads = [(0, "p0", "0", 1, 1, "t", 0, -1), (1, "p0", "0.1", 2, 1, "t", 0, -1)]
    samples = {"time_ns": range(100), "thread": [i % 2 for i in range(100)], "addr": 0x1000, "is_write": True}
    touched = {**samples, "event": EVENT_CODE["fault"]}
    plan = str(tmp_path / "plan.json")
    trace = write_trace(tmp_path / "t.db", touched, threads, meta={"backend": "faults"})
    assert main(["plan", str(trace), "-o", plan]) == 2
    said = capsys.readouterr().err
    assert "first touches only" in said and "--backend emulate" in said
    assert not Path(plan).exists()
    assert main(["compare", str(trace), "--machine", "1x2"]) == 2
    assert "first touches only" in capsys.readouterr().err
    hints = {**samples, "event": [EVENT_CODE[name] for name in ("fault", "hint_fault")] * 50}
    trace = write_trace(tmp_path / "h.db", hints, threads, meta={"backend": "faults"})
    assert main(["plan", str(trace), "-o", plan]) == 0
    capsys.readouterr()
    assert main(["plan", str(trace), "-o", plan, "--machine", "1x2", "--objective", "remote"]) == 0
    assert "2 threads on 1 node (1x2)" in capsys.readouterr().out
    assert main(["plan", str(trace), str(tmp_path / "t.db"), "-o", plan]) == 2
    assert "t.db has first touches only" in capsys.readouterr().err


def test_a_run_is_not_compared_with_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was said to keep the roles of its threads from run to run, and the plan to fit the next one."""
    threads = [(0, "p0", "0", 1, 1, "t", 0, -1), (1, "p0", "0.1", 2, 1, "t", 0, -1)]
    samples = {"time_ns": range(100), "thread": [i % 2 for i in range(100)], "addr": 0x1000, "is_write": True}
    one, other = (str(write_trace(tmp_path / f"{name}.db", samples, threads)) for name in "ab")
    (tmp_path / "link.db").symlink_to(one)
    plan = tmp_path / "plan.json"
    for more in (["--machine", "2x2"], ["--threads", "8"]):
        assert main(["plan", one, other, str(tmp_path / "link.db"), "-o", str(plan), *more]) == 2
        assert "link.db: given twice" in capsys.readouterr().err
        assert not plan.exists()
    for command in (["analyze"], ["report", "-o", str(plan)]):
        assert main([*command, one, other, str(tmp_path / "link.db")]) == 2
        assert "link.db: given twice" in capsys.readouterr().err
        assert not plan.exists()


def test_no_threads_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They were taken for no --threads: the answer was a plan for the recorded ones."""
    threads = [(0, "p0", "0", 1, 1, "t", 0, -1), (1, "p0", "0.1", 2, 1, "t", 0, -1)]
    samples = {"time_ns": range(100), "thread": [i % 2 for i in range(100)], "addr": 0x1000, "is_write": True}
    traces = [str(write_trace(tmp_path / f"{name}.db", samples, threads)) for name in "ab"]
    for number in ("0", "-1", "1"):
        assert main(["plan", *traces, f"--threads={number}", "-o", str(tmp_path / "plan.json")]) == 2
        assert f"--threads {number} — 2 to" in capsys.readouterr().err


def test_words_that_compare_does_not_know_are_refused_before_the_trace_is_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for option, word in (("--objective", "nonsense"), ("--effort", "nonsense"), ("--methods", "nonsense")):
        assert main(["compare", "none.db", option, word]) == 2
        assert "unknown" in capsys.readouterr().err


def test_a_trace_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.db").write_bytes(b"no trace")
    assert main(["plan", str(tmp_path / "t.db"), "-o", str(tmp_path / "plan.json")]) == 2
    assert "not a trace" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_the_machine_has_the_short_name_that_it_has_for_the_lab(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write_trace(tmp_path / "t.db", {"time_ns": range(100), "thread": 0, "addr": 0x1000}, [])
    assert main([command, str(trace), "-m", "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err
