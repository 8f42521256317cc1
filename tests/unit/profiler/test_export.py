"""What `nprof export` writes, read back as its consumers' published formats say; sums are the database's."""

import gzip
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import duckdb
import msgspec
import numpy as np
import pandas as pd
import pytest

from numaplan.profiler import EVENT_CODE, LEVEL_CODE, Trace, write_perfetto
from numaplan.profiler.commands.main import main
from numaplan.profiler.export import protobuf as wire
from tests.support.perfetto import read_perfetto
from tests.support.protobuf import fields, numbers, part, parts
from tests.support.traces import write_trace

EVIL = 'grid\n"\udcff</script>=cmd()'
CODE = 1 << 20
BUILD = "0123456789abcdef"
COUNT = 4000


def test_code_and_memory_have_the_names_of_the_source(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = tmp_path / "named.db"
    named.write_bytes(trace.read_bytes())
    with duckdb.connect(str(named)) as opened:
        opened.execute(f"INSERT INTO code VALUES ('p0', {CODE + 0x1042}, 'relax', '/src/heat.c', 51)")
        opened.execute("INSERT INTO names VALUES (1, -1, 'table', 'int[]', '/src/heat.c', 7, '', 4, -1)")
    (path,) = exported(named, tmp_path, "speedscope", capsys)
    frames = {
        frame.name: frame for frame in msgspec.json.decode(path.read_bytes(), type=Document).shared.frames
    }
    assert (frames["relax"].file, frames["relax"].line) == ("/src/heat.c", 51)
    assert "table (int[], 4 KiB) heat.c:7" in frames
    (path,) = exported(named, tmp_path, "pprof", capsys)
    profile = fields(gzip.decompress(path.read_bytes()))
    lines = [part(line, 2) for location in parts(profile, 4) for line in parts(location, 4)]
    assert 51 in lines and b"relax" in profile[6]


def test_stacks_are_calls_by_their_functions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = {"time_ns": np.arange(6), "ip": CODE + 0x30, "call": [2, 2, 2, 0, -1, 99]}
    regions = [(0, "p0", "text", "app:.text", BUILD, CODE, 0x1000, -1, 0, 0, -1)]
    path = write_trace(tmp_path / "t.db", samples, [(0, "p0", "0", 10, 10, "app", 0, -1)], regions)
    with duckdb.connect(str(path)) as opened:
        calls = [(0, -1, CODE + 0x10), (1, 0, 1 << 40), (2, 1, CODE + 0x20)]  # the second of no known module
        opened.executemany("INSERT INTO calls VALUES (?, ?, 'p0', ?)", calls)
        names = [(0x10, "main", 5), (0x20, "step", 9), (0x30, "relax", 11)]
        rows = [(CODE + at, name, line) for at, name, line in names]
        opened.executemany("INSERT INTO code VALUES ('p0', ?, ?, '/src/heat.c', ?)", rows)
    expected = {("main", "step", "relax"): 3, ("main", "relax"): 1, ("relax",): 2}
    (written,) = exported(path, tmp_path, "speedscope", capsys)
    found = msgspec.json.decode(written.read_bytes(), type=Document)
    accesses = found.profiles[0]
    seen = Counter[tuple[str, ...]]()
    for stack, weight in zip(accesses.samples, accesses.weights, strict=True):
        seen[tuple(found.shared.frames[frame].name for frame in stack[1:])] += int(weight)
    assert seen == expected
    (written,) = exported(path, tmp_path, "pprof", capsys)
    profile = fields(gzip.decompress(written.read_bytes()))
    strings = [one.decode() for one in profile[6] if isinstance(one, bytes)]
    functions = {part(one, 1): strings[part(one, 2)] for one in parts(profile, 5)}
    called = {part(one, 1): functions[part(next(iter(parts(one, 4))), 1)] for one in parts(profile, 4)}
    stacks = Counter[tuple[str, ...]]()
    for sample in parts(profile, 2):
        leaf_first = numbers(part(sample, 1))
        stacks[tuple(called[at] for at in reversed(leaf_first))] += numbers(part(sample, 2))[0]
    assert stacks == expected
    assert strings[part(profile, 14)] == "accesses"  # none is remote


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(7)
    levels = rng.choice([LEVEL_CODE[name] for name in ("l1", "local_dram", "remote_dram")], COUNT)
    thread = rng.integers(-1, 3, COUNT)
    samples = {
        "time_ns": np.sort(rng.integers(0, 10**6, COUNT)),
        "thread": thread,
        "cpu": np.where(rng.random(COUNT) < 0.9, thread, 3),
        "addr": rng.integers(0, 1 << 48, COUNT),
        "ip": rng.choice([0, CODE + 0x1042, CODE + 0x1066, CODE * 9], COUNT),
        "event": EVENT_CODE["load"],
        "level": levels,
        "region": rng.integers(-1, 2, COUNT),
    }
    threads = [
        (0, "p0", "0", 10, 10, "app", 0, -1),
        (1, "p0", "0.1", 11, 10, "worker", 50, 900_000),
        (2, "p0.1", "0", -1, -1, "", 60, -1),
    ]
    regions = [
        (0, "p0", "heap", EVIL.encode("utf-8", "replace").decode(), "", 1 << 30, 4096, 0, 1, 0, -1),
        (1, "p0", "static", "app:table", BUILD, 1 << 31, 4096, -1, 0, 0, -1),
        (2, "p0", "text", "app:.rodata", BUILD, CODE, 0x1000, -1, 0, 0, -1),
        (3, "p0", "text", "app:.text", BUILD, CODE + 0x1000, 0x1000, -1, 0, 0, -1),
        (4, "p0", "text", "odd.so:.text", "b", CODE * 9, 0x1000, -1, 0, 0, -1),
    ]
    lines = [(0, 10, 0, 1, 0, 70), (10, 20, 1, 0, 0, 5), (10, 20, 2, 1, -1, 9)]
    path = tmp_path_factory.mktemp("export") / "t.db"
    meta = {"period": 1000, "argv": '["/bin/app","x y"]', "duration_ns": 10**6}
    return write_trace(path, samples, threads, regions, meta, transfers=lines)


def exported(trace: Path, folder: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> list[Path]:
    assert main(["export", str(trace), "--format", kind, "--to", str(folder)]) == 0
    return [Path(line) for line in capsys.readouterr().out.splitlines()]


def sums(trace: Path) -> tuple[int, int, int]:
    with Trace.open(trace) as opened:
        ((accesses, remote),) = opened.rows(
            "SELECT count(*), count(*) FILTER (WHERE level = 'remote_dram') FROM samples"
        )
        ((lines,),) = opened.rows("SELECT sum(events)::BIGINT FROM transfers")
    return accesses, remote, lines


@pytest.mark.parametrize("value", [0, 1, 127, 128, 1 << 35, (1 << 64) - 1, -1])
def test_numbers_survive_the_wire(value: int) -> None:
    assert fields(wire.number(19, value))[19] == [value % (1 << 64)]
    assert numbers(part(fields(wire.packed(3, [value, 5])), 3)) == [value % (1 << 64), 5]


# ---- pprof ----


def test_a_profile_for_pprof_has_all_samples(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = exported(trace, tmp_path, "pprof", capsys)
    profile = fields(gzip.decompress(path.read_bytes()))
    strings = [one.decode() for one in profile[6] if isinstance(one, bytes)]
    assert strings[0] == "" and len(set(strings)) == len(strings)
    assert [strings[part(kind, 1)] for kind in parts(profile, 1)] == ["accesses", "remote", "transfers"]
    locations = {part(one, 1): one for one in parts(profile, 4)}
    functions = {part(one, 1): strings[part(one, 2)] for one in parts(profile, 5)}
    mappings = {part(one, 1): one for one in parts(profile, 3)}
    assert 0 not in locations | functions | mappings
    total, by_name, keys = Counter[int](), Counter[str](), set()
    for sample in parts(profile, 2):
        (leaf,) = numbers(part(sample, 1))
        values = numbers(part(sample, 2))
        assert len(values) == 3
        total.update(dict(enumerate(values)))
        (line,) = parts(locations[leaf], 4)
        by_name[functions[part(line, 1)]] += values[0]
        keys |= {strings[part(label, 1)] for label in parts(sample, 3)}
        if mapping := part(locations[leaf], 2):
            start, end = (part(mappings[mapping], field) for field in (2, 3))
            assert start <= part(locations[leaf], 3) < end
    assert tuple(total[place] for place in range(3)) == sums(trace)
    assert keys == {"thread", "region"} and part(profile, 12) == 1000
    assert strings[part(profile, 14)] == "remote" and total[1]
    with Trace.open(trace) as opened:
        ((known,),) = opened.rows(f"SELECT count(*) FROM samples WHERE ip = {CODE + 0x1042} AND thread < 2")
    assert by_name["app+0x1042"] == known


def test_pprof_itself_reads_it(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Go from 1.24 on has the source only, which takes the better part of a minute to build.
    pprof = next(Path("/usr/lib").glob("go-*/pkg/tool/*/pprof"), None)
    if pprof is None:
        pytest.skip("no pprof that is built (Debian: golang-go)")
    (path,) = exported(trace, tmp_path, "pprof", capsys)
    environment = {**os.environ, "HOME": str(tmp_path)}
    words = [str(pprof), "-raw", "-symbolize=none", str(path)]
    found = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert found.returncode == 0, found.stderr
    rows = found.stdout.partition("Samples:")[2].partition("Locations")[0].splitlines()
    values = [list(map(int, row.partition(":")[0].split())) for row in rows if row.strip()[:1].isdigit()]
    assert tuple(np.sum(values, axis=0)) == sums(trace)


# ---- speedscope: the rules of its published JSON schema ----

Index = Annotated[int, msgspec.Meta(ge=0)]
Unit = Literal["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"]


class Frame(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    file: str | msgspec.UnsetType = msgspec.UNSET
    line: int | msgspec.UnsetType = msgspec.UNSET
    col: int | msgspec.UnsetType = msgspec.UNSET


class Sampled(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["sampled"]
    name: str
    unit: Unit
    startValue: float  # noqa: N815  (theirs)
    endValue: float  # noqa: N815
    samples: list[list[Index]]
    weights: list[float]


class Shared(msgspec.Struct, forbid_unknown_fields=True):
    frames: list[Frame]


class Document(msgspec.Struct, forbid_unknown_fields=True):
    schema: Literal["https://www.speedscope.app/file-format-schema.json"] = msgspec.field(name="$schema")
    shared: Shared
    profiles: list[Sampled]
    name: str | msgspec.UnsetType = msgspec.UNSET
    activeProfileIndex: Index | msgspec.UnsetType = msgspec.UNSET  # noqa: N815
    exporter: str | msgspec.UnsetType = msgspec.UNSET


@pytest.mark.parametrize("level, shown", [("remote_dram", 1), ("l1", 0)])
def test_speedscope_opens_at_remote_accesses_where_there_are_any(
    level: str, shown: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = {"time_ns": np.arange(6), "level": LEVEL_CODE[level]}
    path = write_trace(tmp_path / "t.db", samples, [(0, "p0", "0", 10, 10, "app", 0, -1)])
    (written,) = exported(path, tmp_path, "speedscope", capsys)
    assert msgspec.json.decode(written.read_bytes(), type=Document).activeProfileIndex == shown


def test_flame_graphs_for_speedscope_have_all_samples(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = exported(trace, tmp_path, "speedscope", capsys)
    found = msgspec.json.decode(path.read_bytes(), type=Document)
    assert tuple(sum(profile.weights) for profile in found.profiles) == sums(trace)
    for profile in found.profiles:
        assert len(profile.samples) == len(profile.weights)
        assert profile.endValue - profile.startValue == sum(profile.weights)
        assert all(frame < len(found.shared.frames) for stack in profile.samples for frame in stack)
    names = [frame.name for frame in found.shared.frames]
    assert "thread p0:0.1" in names and "app+0x1066" in names
    assert not any("\n" in name for name in names)


# ---- Perfetto ----


def test_tracks_and_counters_for_perfetto_have_all_samples(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = exported(trace, tmp_path, "perfetto", capsys)
    tracks, spans, counted = read_perfetto(path.read_bytes())
    accesses, remote, _ = sums(trace)
    total = {name: sum(values) for (parent, name), values in counted.items() if parent == "program"}
    assert total["accesses"] == accesses
    with Trace.open(trace) as opened:
        by_thread = dict(
            opened.rows("SELECT thread, count(*) FROM samples WHERE thread >= 0 GROUP BY thread")
        )
    named = {0: "0 app", 1: "0.1 worker", 2: "0"}
    for thread, count in by_thread.items():
        assert sum(counted[named[thread], "accesses"]) == count
        assert all(0 <= share <= 1 for share in counted[named[thread], "remote share"])
    assert remote and any(counted["program", "remote share"])
    lives = {start: (end, name) for start, end, name, _ in spans if name.startswith("thread")}
    assert lives[50] == (900_000, "thread 0.1") and lives[0] == (10**6, "thread 0")
    ran = [span for span in spans if tracks[span[3]] == "ran on"]
    assert {name for _, _, name, _ in ran} == {*(f"cpu {cpu}, node {cpu // 2}" for cpu in range(4))}


def test_a_caller_may_add_tracks(trace: Path, tmp_path: Path) -> None:
    with Trace.open(trace) as opened:
        path = write_perfetto(opened, tmp_path, {"phases": [(5, 9, "phase 1"), (9, 20, "phase 2")]})
    tracks, spans, _ = read_perfetto(path.read_bytes())
    assert [(start, end, name) for start, end, name, track in spans if tracks[track] == "phases"] == [
        (5, 9, "phase 1"),
        (9, 20, "phase 2"),
    ]


def test_tables_in_csv_are_read_by_pandas(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {path.stem: path for path in exported(trace, tmp_path, "csv", capsys)}
    with Trace.open(trace) as opened:
        assert len(pd.read_csv(files["samples"])) == opened.sample_count
        assert pd.read_csv(files["samples"])["addr"].sum() == opened.query("FROM samples")["addr"].sum()
        assert pd.read_csv(files["regions"])["name"].tolist() == opened.regions()["name"].tolist()
        assert pd.read_csv(files["transfers"])["events"].sum() == 84


def test_other_formats_are_refused(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(trace), "--format", "xml", "--to", str(tmp_path / "no")]) == 2
    said = capsys.readouterr()
    assert "choose from parquet, csv, perfetto, speedscope, pprof" in said.err and not said.out
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(("name", "kind"), [("meta.parquet", "parquet"), ("trace.pb.gz", "pprof")])
def test_a_trace_is_not_overwritten_with_its_export(
    trace: Path, tmp_path: Path, name: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = tmp_path / name
    named.write_bytes(trace.read_bytes())
    assert main(["export", str(named), "--to", str(tmp_path), "--format", kind]) == 2
    assert "would be written over what is read" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert named.read_bytes() == trace.read_bytes()
