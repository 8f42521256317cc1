"""Imports of several files, on several clocks, and of hardware traces by the lines of perf script."""

import shutil
import stat
from pathlib import Path

import pytest

from numaplan.common import MachineLacksError, UsageError
from numaplan.profiler.backends.perf import hardware_trace
from numaplan.profiler.perfdata.decode import decode_perf
from numaplan.profiler.perfdata.file.script import transcribe
from numaplan.profiler.recording.importing import import_recordings
from numaplan.profiler.trace.reader import Trace
from tests.support.perfdata_builder import HOSTNAME, Builder, Event
from tests.support.waiting import PATIENCE_S

FIELDS = ("tid", "time", "addr", "cpu")
CLOCK_DATA, USE_CLOCKID, SAMPLE_ID_ALL = 29, 25, 18


class Clocked(Builder):
    """A recording on a clock of its own choice."""

    clockid = 1

    def attr(self, event: Event) -> bytes:
        data = super().attr(event)
        return data[:92] + self.pack("i", self.clockid) + data[96:]


def one_access(pid: int, time: int, clockid: int, host: str, noted: tuple[int, int] | None) -> Builder:
    event = Event(FIELDS, name="mem-loads", flag_bits=(SAMPLE_ID_ALL, USE_CLOCKID))
    builder = Clocked([event])
    builder.clockid = clockid
    builder.features[HOSTNAME] = builder.text_feature(host)
    if noted:
        builder.features[CLOCK_DATA] = builder.pack("2I2Q", 1, clockid, *noted)
    builder.fork(pid, pid + 1, pid, time - 5)
    builder.sample(0, {"pid": pid, "tid": pid + 1, "time": time, "addr": 64})
    return builder


def write(folder: Path, builders: dict[str, Builder]) -> list[str]:
    for name, builder in builders.items():
        (folder / name).write_bytes(builder.file())
    return [str(folder / name) for name in builders]


def times(path: Path) -> list[tuple[str, int]]:
    with Trace.open(path) as trace:
        sql = (
            "SELECT process, time_ns, t.start_ns FROM samples JOIN threads t USING (thread) ORDER BY time_ns"
        )
        return [(str(process), int(time)) for process, time, _start in trace.rows(sql)]


def test_files_on_different_clocks_meet_on_the_wall_clock(tmp_path: Path) -> None:
    names = write(
        tmp_path,
        {
            "a.data": one_access(50, 1000, 1, "one", (10**18, 500)),
            "b.data": one_access(60, 9000, 4, "two", (10**18 + 300, 9100)),
        },
    )
    import_recordings(names, tmp_path / "trace.db")
    # a: 10^18 + 500 on the wall clock; b: 10^18 + 200.
    assert times(tmp_path / "trace.db") == [("p1", 0), ("p0", 300)]
    with Trace.open(tmp_path / "trace.db") as trace:
        assert trace.meta["wall_clock_ns"] == str(10**18 + 200)
        assert "warnings" not in trace.meta


def test_files_on_one_clock_are_left_on_it(tmp_path: Path) -> None:
    names = write(
        tmp_path,
        {
            "a.data": one_access(50, 1000, 1, "one", (10**18, 500)),
            "b.data": one_access(60, 1300, 1, "one", (10**18 + 100, 500)),
        },
    )
    import_recordings(names, tmp_path / "trace.db")
    assert times(tmp_path / "trace.db") == [("p0", 0), ("p1", 300)]


def test_clocks_that_cannot_be_compared_are_told(tmp_path: Path) -> None:
    names = write(
        tmp_path,
        {"a.data": one_access(50, 1000, 1, "one", None), "b.data": one_access(60, 1300, 4, "one", None)},
    )
    import_recordings(names, tmp_path / "trace.db")
    with Trace.open(tmp_path / "trace.db") as trace:
        assert "clocks differ" in trace.meta["warnings"]


def test_a_process_in_two_files_is_one_process(tmp_path: Path) -> None:
    """As `perf record --switch-output` writes them."""
    names = write(
        tmp_path,
        {
            "a.data": one_access(50, 1000, 1, "one", None),
            "b.data": one_access(50, 2000, 1, "one", None),
        },
    )
    summary = import_recordings(names, tmp_path / "trace.db")
    assert times(tmp_path / "trace.db") == [("p0", 0), ("p0", 1000)]
    assert summary.threads == 1


def fake_perf(folder: Path, lines: str, refuses: str = "") -> str:
    """A perf that prints these lines, unless it is asked for the field that it does not have."""
    script = folder / "perf"
    complaint = f"Samples for 'x' event do not have it. Cannot print '{refuses}' field."
    refuse = f'case "$*" in *{refuses}*) echo "{complaint}" >&2; exit 1;; esac\n' if refuses else ""
    script.write_text(f"#!/bin/sh\n{refuse}cat <<'END'\n{lines}END\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


LEVEL = "|OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A"
WIDE = f"""\
 50/51 [003] 12.000000345: cpu/mem-loads,ldlat=30/P:   7f0000001000   68100142 {LEVEL} 33 400abc 1000
# a comment
   -1/-1   [000]    13.000000000:  dummy:HG:            0   5080021 |OP N/A|BLK  N/A   0   0   0
   60/61   [001]    12.000000999:  memory:   ffff   144 |OP STORE|LVL L1 hit|BLK  N/A   7   400def   2000
"""
NARROW = "   50/51   12.000000345:   memory:   10000   5   400abc   1000\n"


def test_lines_of_perf_script(tmp_path: Path) -> None:
    perf = fake_perf(tmp_path, WIDE)
    told: list[int] = []
    transcribe(perf, "--itrace=M", tmp_path / "x.data", tmp_path / "out.data", PATIENCE_S, told.append)
    decoded = decode_perf(tmp_path / "out.data")
    assert (decoded.events, decoded.warnings) == (("cpu/mem-loads,ldlat=30/P", "dummy:HG", "memory"), ())
    found = {name: decoded.samples[name].tolist() for name in ("pid", "tid", "time", "addr", "ip", "weight")}
    assert found == {
        "pid": [50, -1, 60],
        "tid": [51, -1, 61],
        "time": [12_000_000_345, 13_000_000_000, 12_000_000_999],
        "addr": [0x7F0000001000, 0, 0xFFFF],
        "ip": [0x400ABC, 0, 0x400DEF],
        "weight": [33, 0, 7],
    }
    assert decoded.samples["phys_addr"].tolist() == [0x1000, 0, 0x2000]
    assert decoded.samples["data_src"].tolist() == [0x68100142, 0x5080021, 0x144]
    assert decoded.samples["cpu"].tolist() == [3, 0, 1]


def test_fields_that_perf_does_not_have_are_not_asked_for(tmp_path: Path) -> None:
    perf = fake_perf(tmp_path, NARROW, refuses="data_src")
    transcribe(perf, "--itrace=M", tmp_path / "x.data", tmp_path / "out.data", PATIENCE_S, lambda _: None)
    samples = decode_perf(tmp_path / "out.data").samples
    assert [samples[name].tolist() for name in ("addr", "weight", "data_src")] == [[0x10000], [5], [0]]


def test_what_perf_says_when_it_prints_nothing(tmp_path: Path) -> None:
    perf = fake_perf(tmp_path, "", refuses="-F")
    with pytest.raises(MachineLacksError, match="cannot decode the hardware trace: Samples for"):
        transcribe(perf, "--itrace=M", tmp_path / "x.data", tmp_path / "out.data", PATIENCE_S, lambda _: None)


def test_a_perf_that_does_not_end_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "perf"
    script.write_text("#!/bin/sh\nexec sleep 1000\n")
    script.chmod(0o755)
    with pytest.raises(MachineLacksError):
        transcribe(str(script), "--itrace=M", tmp_path / "x", tmp_path / "out.data", 0.2, lambda _: None)


def spe_recording() -> bytes:
    from tests.unit.profiler.recording.test_hardware_samples import five_accesses, spe_file

    return spe_file(five_accesses())


@pytest.mark.system
def test_perf_script_where_perf_inject_gives_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    (tmp_path / "spe.data").write_bytes(spe_recording())
    import_recordings([str(tmp_path / "spe.data")], tmp_path / "injected.db")

    def fails(_recording: Path, _output: Path) -> Path:
        raise MachineLacksError("perf cannot decode the hardware trace: no", "do")

    monkeypatch.setattr(hardware_trace, "synthesise", fails)
    told: list[str] = []
    summary = import_recordings(
        [str(tmp_path / "spe.data")], tmp_path / "script.db", progress=lambda text, _share: told.append(text)
    )
    assert summary.samples == 5
    assert any("perf script" in text for text in told)
    sql = """SELECT time_ns, t.path, addr, ip, event::VARCHAR, level::VARCHAR, r.kind FROM samples
             JOIN threads t USING (thread) LEFT JOIN regions r USING (region) ORDER BY time_ns"""
    answers = []
    for name in ("injected.db", "script.db"):
        with Trace.open(tmp_path / name) as trace:
            answers.append(trace.rows(sql))
    assert answers[0] == answers[1]
    assert len(answers[0]) == 5


def test_a_hardware_trace_without_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spe.data").write_bytes(spe_recording())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises((MachineLacksError, UsageError), match="perf"):
        import_recordings([str(tmp_path / "spe.data")], tmp_path / "trace.db")
    assert not (tmp_path / "trace.db").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["spe.data"]
