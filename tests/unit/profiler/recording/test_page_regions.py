"""Which region a page is of, by when it was used."""

import numpy as np

from numaplan.profiler.identity.records import RegionRecord
from numaplan.profiler.recording.attribution import RegionFinder
from numaplan.profiler.recording.page_regions import SEVERAL, PageRegions

PID, START = 10, 0x10000
REGIONS = [
    RegionRecord("p0", PID, "heap", "app+0x10", "", START, 0x2800, "0", 1, 100, 200),
    RegionRecord("p0", PID, "heap", "app+0x20", "", START, 0x2000, "0", 1, 300, -1),
]


def regions_of(address: int, time: int, *late: int) -> int:
    pages = PageRegions(REGIONS, RegionFinder(REGIONS))
    at, until = np.array([time]), [np.array([one]) for one in late]
    return int(pages.find(PID, np.array([address], np.uint64), (at,), until)[0])


def test_the_region_that_was_there() -> None:
    assert [regions_of(START, time) for time in (99, 150, 250, 350)] == [-1, 0, -1, 1]


def test_a_region_whose_beginning_is_told_late_has_what_was_in_none() -> None:
    assert regions_of(START + 0x1000, 99, 101) == 0
    assert regions_of(START, 150, 350) == 0  # one was there
    assert regions_of(START, 250, 299) == -1
    assert regions_of(START, 250, 299, 301) == 1


def test_where_a_region_ends_within_a_page_samples_must_tell() -> None:
    assert regions_of(START + 0x2000, 150) == 0
    assert (
        PageRegions(
            [*REGIONS, RegionRecord("p0", PID, "heap", "b", "", START + 0x2800, 0x800, "0", 1, 0, -1)],
            RegionFinder(REGIONS),
        ).find(PID, np.array([START + 0x2000], np.uint64), (np.array([150]),))[0]
        == SEVERAL
    )
