"""The recorded perf.data files of the development fixtures decode to their manifest's truth."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numaplan.profiler.perfdata.decode import Decoded, decode_perf
from numaplan.profiler.perfdata.file.source import PerfDataError
from tests.conftest import REPOSITORY

FOLDER = REPOSITORY.parent / "shared" / "fixtures" / "perfdata"
RECORD_TYPES = {
    "MMAP": 1,
    "LOST": 2,
    "COMM": 3,
    "EXIT": 4,
    "THROTTLE": 5,
    "FORK": 7,
    "SAMPLE": 9,
    "MMAP2": 10,
}
RECORD_TYPES |= {"LOST_SAMPLES": 13, "ATTR": 64, "FEATURE": 80, "COMPRESSED": 81, "FINISHED_ROUND": 68}


def manifest() -> list[dict[str, str]]:
    path = FOLDER / "manifest.csv"
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def truths(malformed: bool) -> list[Any]:
    rows = [(row["file"], json.loads(row["truth"])) for row in manifest()]
    return [pytest.param(name, truth, id=name) for name, truth in rows if ("malformed" in truth) == malformed]


def counted(decoded: Decoded) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for event, count in enumerate(np.bincount(decoded.samples["event"], minlength=len(decoded.events))):
        counts[decoded.events[event]] += int(count)
    return {name: count for name, count in counts.items() if count}


@pytest.mark.parametrize(("name", "truth"), truths(malformed=False))
def test_truth(shared_fixtures: Path, name: str, truth: dict[str, Any]) -> None:
    decoded = decode_perf(shared_fixtures / "perfdata" / name)
    samples = decoded.samples
    assert len(samples["time"]) == truth["samples"]
    found: dict[str, Any] = {
        "events": counted(decoded),
        "threads": len(np.unique(samples["tid"])),
        "min_time": int(samples["time"].min()),
        "max_time": int(samples["time"].max()),
        "min_addr": hex(samples["addr"].min()),
        "max_addr": hex(samples["addr"].max()),
        "xor_addr": hex(np.bitwise_xor.reduce(samples["addr"])),
        "sum_addr": hex(samples["addr"].sum()),
        "lost": decoded.lost,
        "attrs": len(decoded.events),
        "pipe": decoded.header["pipe"],
        "arch": decoded.header.get("arch"),
    }
    assert {key: found[key] for key in found if key in truth} == {
        key: truth[key] for key in found if key in truth
    }
    for kind, count in truth.get("records", {}).items():
        if kind in RECORD_TYPES:
            assert decoded.header["records"].get(RECORD_TYPES[kind], 0) == count, kind


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.script.csv")))
def test_every_sample_as_perf_script_gives_it(shared_fixtures: Path, name: str) -> None:
    table = shared_fixtures / "perfdata" / name
    with table.open(newline="") as file:
        wanted = sorted(
            (int(row["time_ns"]), int(row["pid"]), int(row["tid"]), row["event"], int(row["addr"], 16))
            for row in csv.DictReader(file)
        )
    decoded = decode_perf(table.with_name(name.replace(".script.csv", ".data")))
    columns = [decoded.samples[key].tolist() for key in ("time", "pid", "tid", "event", "addr")]
    found = sorted((t, p, q, decoded.events[e], a) for t, p, q, e, a in zip(*columns, strict=True))
    assert found == wanted


@pytest.mark.parametrize("name", ["syn-pebs-loads-stores", "syn-pebs-phys-lost", "syn-bigendian"])
def test_every_field_in_file_order(shared_fixtures: Path, name: str) -> None:
    with (shared_fixtures / "perfdata" / f"{name}.truth.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    decoded = decode_perf(shared_fixtures / "perfdata" / f"{name}.data")
    for key in ("pid", "tid", "cpu", "addr", "weight", "data_src", "phys_addr", "period", "ip"):
        assert decoded.samples[key].tolist() == [int(row[key] or "0", 0) for row in rows], key
    assert decoded.samples["time"].tolist() == [int(row["time_ns"]) for row in rows]
    assert [decoded.events[event] for event in decoded.samples["event"]] == [row["event"] for row in rows]


@pytest.mark.parametrize(("name", "truth"), truths(malformed=True))
def test_malformed_files_end_in_an_error_or_a_warning(
    shared_fixtures: Path, name: str, truth: dict[str, Any]
) -> None:
    try:
        decoded = decode_perf(shared_fixtures / "perfdata" / name)
    except PerfDataError as error:
        assert truth.get("expect") != "ok"
        assert "offset" in error.what or "bytes" in error.what
        return
    count = len(decoded.samples["time"])
    assert truth.get("expect") != "error"
    assert count <= truth.get("max_samples", count)
    if truth.get("expect") == "ok":
        assert count == truth["max_samples"]
    if truth.get("expect") == "partial" and count < truth["max_samples"]:
        assert decoded.warnings
