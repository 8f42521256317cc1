"""A full disk is what is said of it: where it is, and what to do; nothing half is left."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.commands import one_line_error, run
from tests.support.traces import write_trace

pytestmark = pytest.mark.system

THREAD = (0, "p0", "0", 1, 1, "", 0, -1)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize(
    ("kind", "room"), [("parquet", 8), ("csv", 8), ("perfetto", 0), ("speedscope", 0), ("pprof", 0)]
)
def test_a_failed_export_leaves_nothing(small: Path, tmp_path: Path, kind: str, room: int) -> None:
    """Neither the folders that were made for it, nor a part of the files; what was there stays."""
    trace, there = write_trace(tmp_path / "t.db", {"time_ns": np.arange(50)}, [THREAD]), small / "there"
    there.mkdir()
    (small / "full").write_bytes(bytes((256 - room) << 10))
    for folder in (small / "one" / "two", there):
        error = one_line_error(run("nprof", "export", trace, "--to", folder, "--format", kind), "nprof", 2)
        assert f"{folder}/" in error and "No space left on device" in error
    assert {path.name for path in small.rglob("*")} == {"there", "full"}


@pytest.mark.parametrize(("kind", "room"), [("csv", 4), ("parquet", 4), ("graphml", 0), ("perfetto", 0)])
def test_a_failed_analysis_leaves_nothing(small: Path, tmp_path: Path, kind: str, room: int) -> None:
    trace = write_trace(tmp_path / "t.db", {"time_ns": np.arange(5000) * 1000}, [THREAD])
    (small / "full").write_bytes(bytes((256 - room) << 10))
    result = run("nmap", "analyze", trace, "--to", small / "out", "--format", kind)
    assert "No space left on device" in one_line_error(result, "nmap", 2)
    assert [path.name for path in small.rglob("*")] == ["full"]


def test_an_export_says_where_there_is_no_room(small: Path, tmp_path: Path) -> None:
    random, count = np.random.default_rng(1), 200_000
    samples = {"time_ns": np.arange(count), "addr": random.integers(0, 1 << 40, count)}
    trace = write_trace(tmp_path / "t.db", samples, [THREAD])
    error = one_line_error(run("nprof", "export", trace, "--to", small / "out"), "nprof", 2)
    assert f"{small}/out/samples.parquet: No space left on device — free some space" in error
    assert list(small.iterdir()) == []


def test_a_recording_says_that_its_own_disk_is_full(small: Path) -> None:
    result = run("nprof", "record", "--backend", "faults", "-o", small / "t.db", "--", "true")
    if result.returncode == 3:
        pytest.skip(result.stderr.decode())
    error = one_line_error(result, "nprof", 2)
    assert "No space left on device — free some space there" in error and "-o" in error
    assert list(small.iterdir()) == []
