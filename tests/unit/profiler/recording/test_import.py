"""Recordings from elsewhere become traces."""

import gzip
import io
import json
import lzma
import random
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from numaplan.common import NumaplanError, UsageError
from numaplan.machine import Machine
from numaplan.profiler.commands.main import main
from numaplan.profiler.perfdata.accesses.event_kinds import event_codes
from numaplan.profiler.recording.importing import import_recordings
from numaplan.profiler.trace.reader import Trace
from numaplan.profiler.trace.schema import EVENTS
from tests.fuzz.recordings import mutate, recordings
from tests.support.perfdata_builder import Builder, Event

FIELDS = ("tid", "time", "addr", "id", "cpu", "weight", "data_src")
L1_LOAD, STORE, REMOTE_LOAD = 0x68100142, 0x4 | 1 << 5, 0x2 | 0xD << 33 | 1 << 37
NUMA_TOPOLOGY = 14


def recording() -> Builder:
    loads = Event(FIELDS, ids=(1,), name="cpu/mem-loads,ldlat=30/P")
    stores = Event(FIELDS, ids=(2,), name="cpu/mem-stores/P")
    cycles = Event(FIELDS, ids=(3,), name="cycles")
    builder = Builder([loads, stores, cycles])
    topology = builder.pack("I", 2)
    for node, cpus in ((0, "0-1"), (3, "2-3")):
        topology += builder.pack("I2Q", node, 1024, 512) + builder.text_feature(cpus)
    builder.features[NUMA_TOPOLOGY] = topology
    builder.comm(50, 50, "app", 1000, by_exec=True)
    builder.fork(50, 51, 50, 1100)
    builder.mmap2(50, 0x10000, 0x1000, "//anon", 1000)
    builder.mmap2(50, 0x400000, 0x1000, "/usr/bin/app", 1000, build_id="ee" * 20)
    rows = (
        (1, 50, 0x10008, 0, L1_LOAD, 5),
        (2, 51, 0x10010, 2, STORE, 0),
        (1, 51, 0x400010, 3, REMOTE_LOAD, 300),
        (3, 51, 0, 0, 0, 0),  # no memory access
        (1, 50, 0, 0, L1_LOAD, 3),  # no address
    )
    for number, tid, addr, cpu, source, weight in rows:
        values = {"id": number, "pid": 50, "tid": tid, "time": 2000 + cpu, "addr": addr, "cpu": cpu}
        builder.sample(number - 1, {**values, "data_src": source, "weight": weight})
    builder.lost(6, 2100)
    return builder


def rows_of(path: Path) -> list[tuple[object, ...]]:
    query = """
        select s.time_ns, t.path, s.cpu, s.node, s.addr, s.event::varchar, s.is_write, s.level::varchar,
               s.latency, r.kind
        from samples s join threads t using (thread) left join regions r on r.region = s.region
        order by s.time_ns
    """
    with Trace.open(path) as trace:
        return list(trace.query(query).itertuples(index=False, name=None))


def expected() -> list[tuple[object, ...]]:
    return [
        (0, "0", 0, 0, 0x10008, "load", False, "l1", 5, "mmap"),
        (2, "0.1", 2, 3, 0x10010, "store", True, "unknown", -1, "mmap"),
        (3, "0.1", 3, 3, 0x400010, "load", False, "remote_dram", 300, "text"),
    ]


def test_samples_threads_nodes_and_regions(tmp_path: Path) -> None:
    (tmp_path / "perf.data").write_bytes(recording().file())
    summary = import_recordings([str(tmp_path / "perf.data")], tmp_path / "trace.db")
    assert (summary.samples, summary.threads, summary.losses) == (3, 2, 6)
    assert rows_of(tmp_path / "trace.db") == expected()
    with Trace.open(tmp_path / "trace.db") as trace:
        assert [(node.id, node.cpus) for node in trace.machine.nodes] == [(0, (0, 1)), (3, (2, 3))]
        assert "warnings" not in trace.meta


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (((0, "0-1"), (0, "2-3")), "distinct ids"),
        (((0, "0-1"), (4_000_000_000, "2-3")), "no system has a node 4000000000"),
        (((0, "0-1"), (1, "2=3")), "not a list of cpus"),
        (((0, "0-99999999"), (1, "2")), "too large"),
        (((0, "0-1"), (1, "1-2")), "a cpu is listed twice"),
    ],
)
def test_a_damaged_description_of_the_machine(
    tmp_path: Path, nodes: tuple[tuple[int, str], ...], words: str
) -> None:
    builder = recording()
    content = builder.pack("I", len(nodes))
    for node, cpus in nodes:
        content += builder.pack("I2Q", node, 1024, 512) + builder.text_feature(cpus)
    builder.features[NUMA_TOPOLOGY] = content
    path, trace_path = tmp_path / "perf.data", tmp_path / "trace.db"
    path.write_bytes(builder.file())
    assert import_recordings([str(path)], trace_path).samples == 3
    with Trace.open(trace_path) as trace:
        assert [(node.id, node.cpus) for node in trace.machine.nodes] == [(0, (0, 1, 2, 3))]
        warning = trace.meta["warnings"]
    assert str(path) in warning and words in warning and "--machine" in warning
    import_recordings([str(path)], trace_path, machine=Machine.load("2x2"))
    with Trace.open(trace_path) as trace:
        assert len(trace.machine.nodes) == 2 and "warnings" not in trace.meta


def test_a_place_for_the_trace_is_asked_for_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder"):
        import_recordings([str(tmp_path / "no.data")], tmp_path / "missing" / "trace.db")


def test_damage_is_named_where_no_access_is_left(tmp_path: Path) -> None:
    builder = Builder([Event(("tid", "time"), name="cycles")])
    builder.sample(0, {})
    (tmp_path / "perf.data").write_bytes(builder.file()[:-4])
    with pytest.raises(UsageError, match=r"among 1 samples \(.*\); feature .* beyond the end"):
        import_recordings([str(tmp_path / "perf.data")], tmp_path / "trace.db")


def test_a_machine_without_the_cpus_that_were_seen(tmp_path: Path) -> None:
    path, trace_path = tmp_path / "perf.data", tmp_path / "trace.db"
    path.write_bytes(recording().file())
    import_recordings([str(path)], trace_path, machine=Machine.load("1x2"))
    with Trace.open(trace_path) as trace:
        assert "--machine 1x2 has no cpu 3" in trace.meta["warnings"]


def test_a_recording_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recording().file())
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(UsageError, match="given twice"):
        import_recordings([str(path), str(tmp_path / "link")], tmp_path / "trace.db")


def test_page_faults_alone_make_no_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = Builder([Event(("tid", "time", "addr"), name="page-faults")])
    for tid in (50, 51):
        builder.sample(0, {"pid": 50, "tid": tid, "time": 2000 + tid, "addr": 0x10000 * tid})
    (tmp_path / "perf.data").write_bytes(builder.file())
    output = str(tmp_path / "trace.db")
    assert main(["import", str(tmp_path / "perf.data"), "-o", output]) == 0
    said = capsys.readouterr().err
    assert "page faults only" in said and "perf mem record" in said and "longer run" not in said
    assert main(["info", output]) == 0
    assert "exit code" not in (shown := capsys.readouterr().out) and "period" not in shown
    assert main(["info", "--json", output]) == 0
    assert json.loads(capsys.readouterr().out)["exit_code"] is None


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_files(tmp_path: Path, pack: object) -> None:
    (tmp_path / "perf.data.packed").write_bytes(pack(recording().file()))  # type: ignore[operator]
    import_recordings([str(tmp_path / "perf.data.packed")], tmp_path / "trace.db")
    assert rows_of(tmp_path / "trace.db") == expected()


def test_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(recording().pipe())))
    import_recordings(["-"], tmp_path / "trace.db")
    assert rows_of(tmp_path / "trace.db") == expected()


class Piped(io.RawIOBase):
    """A pipe that brings a few bytes at a time, and tells how many were taken from it."""

    def __init__(self, content: bytes, step: int = 5) -> None:
        self.content, self.step, self.taken = content, step, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        part = self.content[self.taken : self.taken + min(self.step, len(buffer))]
        buffer[: len(part)] = part
        self.taken += len(part)
        return len(part)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bytes])
def test_a_packed_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: object) -> None:
    piped = Piped(pack(recording().file()))  # type: ignore[operator]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(piped)))
    import_recordings(["-"], tmp_path / "trace.db")
    assert rows_of(tmp_path / "trace.db") == expected()


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_a_pipe_of_something_else_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: object
) -> None:
    noise = random.Random(1).randbytes(9 << 20)
    piped = Piped(pack(b"\0" * 8 + noise), 4096)  # type: ignore[operator]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(piped)))
    with pytest.raises(UsageError, match=r"^stdin: no perf\.data file \(offset 0: b'\\x00"):
        import_recordings(["-"], tmp_path / "trace.db")
    assert piped.taken < 3 << 20


def test_an_empty_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(UsageError, match=r"^stdin: no perf\.data file \(offset 0: empty"):
        import_recordings(["-"], tmp_path / "trace.db")


@pytest.mark.parametrize("packed", [True, False])
def test_messages_name_what_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    cut = recording().pipe()[:-5]
    given = tmp_path / "perf.data.gz"
    given.write_bytes(gzip.compress(cut))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(cut)))
    import_recordings([str(given) if packed else "-"], tmp_path / "trace.db")
    with Trace.open(tmp_path / "trace.db") as trace:
        assert trace.meta["warnings"].startswith(f"{given if packed else 'stdin'}: record at offset")


def test_several_files_make_one_trace(tmp_path: Path) -> None:
    for name, pid in (("a.data", 50), ("b.data", 60)):
        builder = Builder([Event(FIELDS, ids=(1,), name="mem-loads")])
        builder.sample(0, {"pid": pid, "tid": pid, "time": 1000 + pid, "addr": pid, "id": 1})
        (tmp_path / name).write_bytes(builder.file())
    names = [str(tmp_path / name) for name in ("b.data", "a.data")]
    assert import_recordings(names, tmp_path / "trace.db").samples == 2
    assert [row[0] for row in rows_of(tmp_path / "trace.db")] == [0, 10]


def test_a_recording_without_times(tmp_path: Path) -> None:
    builder = Builder([Event(("tid", "addr"), name="page-faults")])
    builder.fork(5, 6, 5, 10**12)
    builder.sample(0, {"pid": 5, "tid": 6, "addr": 1})
    (tmp_path / "perf.data").write_bytes(builder.file())
    import_recordings([str(tmp_path / "perf.data")], tmp_path / "trace.db")
    assert [row[0] for row in rows_of(tmp_path / "trace.db")] == [0]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cpu/mem-loads,ldlat=30/P", "load"),
        ("cpu/mem-loads-aux/", None),
        ("cpu_core/mem-stores/pp", "store"),
        ("mem_inst_retired.all_stores:pp", "store"),
        ("mem_load_l3_miss_retired.remote_dram", "llc_miss_remote"),
        ("mem_load_uops_llc_miss_retired.local_dram:u", "llc_miss_local"),
        ("ibs_op//", "load"),
        ("page-faults:u", "fault"),
        ("cycles:pp", None),
        ("dummy:HG", None),
    ],
)
def test_kinds_of_events(name: str, kind: str | None) -> None:
    code = event_codes([name])[0]
    assert (EVENTS[code] if code < len(EVENTS) else None) == kind


def test_a_recording_without_memory_accesses(tmp_path: Path) -> None:
    builder = Builder([Event(("tid", "time"), name="cycles")])
    builder.sample(0, {})
    (tmp_path / "perf.data").write_bytes(builder.file())
    with pytest.raises(UsageError, match=r"no memory access among 1 samples.*cycles.*perf mem record"):
        import_recordings([str(tmp_path / "perf.data")], tmp_path / "trace.db")
    assert not (tmp_path / "trace.db").exists()


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_files_that_are_damaged_or_without_bound(tmp_path: Path, pack: object) -> None:
    for content in (pack(recording().file())[:-30], pack(b"\0" * (70 << 20))):  # type: ignore[operator]
        (tmp_path / "perf.data").write_bytes(content)
        with pytest.raises(UsageError):
            import_recordings([str(tmp_path / "perf.data")], tmp_path / "trace.db")


@pytest.mark.slow
def test_mutations_import_or_are_refused(tmp_path: Path) -> None:
    chance = random.Random(5)
    originals = [recording().file(), *recordings()]
    imported = 0
    for _ in range(60):
        (tmp_path / "perf.data").write_bytes(mutate(chance.choice(originals), chance))
        with suppress(NumaplanError):
            imported += import_recordings([str(tmp_path / "perf.data")], tmp_path / "trace.db").samples > 0
    assert imported


def test_a_device_without_end_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"/dev/zero: no perf\.data file"):
        import_recordings(["/dev/zero"], tmp_path / "t.db")
