"""A few hundred mutations a run; `python -m tests.fuzz.recordings` tries more."""

from collections.abc import Callable
from pathlib import Path

import pytest

from numaplan.profiler.perfdata.decode import decode_perf
from tests.fuzz import recordings as fuzz
from tests.fuzz.recordings import recordings, run
from tests.support.perfdata_builder import Builder, Event


def test_the_originals_are_sound(tmp_path: Path) -> None:
    for index, content in enumerate(recordings()):
        path = tmp_path / f"{index}.data"
        path.write_bytes(content)
        decoded = decode_perf(path)
        assert (len(decoded.samples["time"]), decoded.warnings) == (12, ())
        assert decoded.lost == 3


@pytest.mark.parametrize("seed", range(4))
def test_mutations_never_crash_hang_or_fill_the_memory(seed: int) -> None:
    assert run(150, seed, list(recordings())) > 0


def test_every_kind_of_record_can_come_in_floods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "_FLOOD", 1.0)
    monkeypatch.setattr(fuzz, "_MOST_REPEATED", 5000)
    assert run(60, 1, list(recordings())) > 50


DEEP, FORKED = 250_000, 30_000


def _reserved_downwards(builder: Builder) -> None:
    """Each reserved area lies below the last one."""
    for number in range(DEEP):
        builder.mmap2(10, 0x7F0000000000 - (number << 17), 1 << 16, "//anon", 5 + number, protection=0)


def _forks_of_a_large_one(builder: Builder) -> None:
    """Every child begins with two hundred regions."""
    for number in range(200):
        builder.mmap2(10, 0x7F0000000000 + (number << 17), 1 << 16, "//anon", 5, protection=3)
    for number in range(FORKED):
        builder.fork(20 + number, 20 + number, 10, 1000 + number)
        builder.sample(0, {"pid": 20 + number, "tid": 20 + number, "time": 10**6})


@pytest.mark.slow
@pytest.mark.parametrize("fill", [_reserved_downwards, _forks_of_a_large_one])
def test_floods_that_cost_more_than_their_size(tmp_path: Path, fill: Callable[[Builder], None]) -> None:
    builder = Builder([Event(("ip", "tid", "time", "addr"))])
    builder.comm(10, 10, "app", 1, by_exec=True)
    builder.sample(0, {"pid": 10, "tid": 10, "time": 10**6})
    fill(builder)
    path = tmp_path / "perf.data"
    path.write_bytes(builder.file())
    del builder
    assert fuzz.try_one(path, fuzz.peak() + fuzz.MEMORY)
