"""Which modelled cache stands for a larger input, and what is counted under it."""

from dataclasses import replace
from pathlib import Path

import pytest

from numaplan.profiler.backends.emulation.footprint import Scale, footprint_of, scale_of
from numaplan.profiler.backends.emulation.options import EmulateOptions
from numaplan.profiler.backends.emulation.spool import read_processes
from tests.support.spools import write_threads


def test_counters_are_those_of_the_cache_that_stands_for_the_input(tmp_path: Path) -> None:
    write_threads(tmp_path, [70])
    (process,) = read_processes(tmp_path)
    thread = process.threads[0].copy()
    thread["past"][:, :2] = [[10, 1], [200, 20]]
    thread["llc_misses_local"], thread["llc_misses_remote"] = 7, 8
    for chosen, local, remote in ((None, 7, 8), (0, 11, 220), (1, 1, 20)):
        counts = dict(Scale(True, 1, 2, (1 << 20, 2 << 20), chosen).counts(thread))
        assert (counts["llc_misses_local"], counts["llc_misses_remote"]) == (local, remote)
        assert (counts["llc_misses_at_1M"], counts["llc_misses_at_2M"]) == (231, 21)
    assert [name for name, _ in Scale(False, 0, 0, (), None).counts(thread)] == ["loads", "stores", "sleeps"]
    thread["sleeps"] = -1  # nobody counted
    assert [name for name, _ in Scale(False, 0, 0, (), None).counts(thread)] == ["loads", "stores"]


@pytest.mark.parametrize(
    ("stated", "chosen"),
    [(0, None), (12_288, 2), (1, 2), (16_000, 2), (18_000, 1), (30_000, 1), (1 << 40, 0)],
)
def test_the_nearest_cache_stands_for_the_input(tmp_path: Path, stated: int, chosen: int | None) -> None:
    write_threads(tmp_path, [70])
    sizes = (1 << 18, 1 << 19, 1 << 20)
    options = EmulateOptions(True, True, True, 1, (), sizes, stated)
    scale = scale_of(read_processes(tmp_path), options)
    assert (scale.footprint, scale.chosen) == (12_288, chosen)
    assert ("for_llc" in scale.facts()) == (chosen is not None)


def test_processes_that_live_together_are_one_footprint(tmp_path: Path) -> None:
    write_threads(tmp_path, [70])
    (one,) = read_processes(tmp_path)
    spans = [(0, 10, 5), (10, 20, 4), (15, 30, 3), (29, 40, 1)]
    processes = [replace(one, first_ns=0, last_ns=e - s, shift_ns=s, footprint=n) for s, e, n in spans]
    assert footprint_of(processes) == 7


@pytest.mark.parametrize(
    ("stated", "said"), [(0, ""), (1024, "1K is less than the 4.5M"), (9 << 19, ""), (1 << 30, "")]
)
def test_an_input_that_is_smaller_than_the_recorded_one_is_most_likely_a_mistake(
    stated: int, said: str
) -> None:
    warning = Scale(True, 9 << 19, stated, (1 << 20,), 0).smaller
    assert bool(warning) == bool(said) and said in warning
