"""Who uses which page of a region with more threads than were recorded."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.machine import Machine
from numaplan.mapper import PlanRegion
from numaplan.mapper.memory.pages import place_pages
from numaplan.mapper.plan_file.scaling import scaling_lines
from numaplan.mapper.scaling.memory import scaled_pages
from numaplan.mapper.scaling.regions import with_scales
from numaplan.mapper.scaling.rows import Scale
from numaplan.mapper.scaling.scaled import carry_over, facts_of
from numaplan.mapper.scaling.sequences import Recording
from numaplan.mapper.scaling.team import Team
from numaplan.profiler import RegionKey

from .test_patterns import ring, workload

PAGE = 4096
WANTED = 16
THREADS = [("p0", f"0.{member}" if member else "0") for member in range(WANTED)]
NODES = [member // 4 for member in range(WANTED)]
Owner = Callable[[int, int, int], int]


def counts(users: Sequence[Sequence[int]], touched: Sequence[int] | None = None) -> PageCounts:
    """A region with the threads that use each page; touched: who touches it first, or the main thread all."""
    pages = [(page, thread) for page, who in enumerate(users) for thread in who]
    page, thread = np.array(pages).T
    made = np.full(len(pages), 100)
    return PageCounts(
        regions=[RegionKey(kind="heap", name="app+0x1", bytes=len(users) * PAGE, thread="0", sequence=1)],
        region=np.zeros(len(pages), np.int64),
        page=page,
        thread=thread,
        accesses=made,
        writes=made,
        toucher=np.zeros(len(pages), np.int64) if touched is None else np.array(touched)[page],
        exact=True,
    )


def owned(owner: Owner, n: int, pages: int, *, by_users: bool = False) -> PageCounts:
    """Each page is one thread's; owner: by page, threads, and pages."""
    owners = [owner(page, n, pages) for page in range(pages)]
    return counts([[one] for one in owners], owners if by_users else None)


def carried(*recorded: PageCounts) -> PageCounts:
    """For 16 threads, from recordings of 4 and 8."""
    recordings = []
    for n, pages in zip((4, 8), recorded, strict=True):
        paths = ["0", *(f"0.{number}" for number in range(1, n))]
        team = Team(members=tuple(range(n)), others=(), parent="0", leads=True, before=0)
        recordings.append(Recording(pages, team, paths))
    scale = Scale(recordings[-1].team, np.arange(WANTED), {}, WANTED)
    return scaled_pages(recordings, scale, lambda path: path)


def planned(pages: PageCounts) -> tuple[PlanRegion, ...]:
    return place_pages(pages, NODES, Machine.load("4x4")).memory


def dealt(page: int, n: int, _: int) -> int:
    """Two pages each in turn."""
    return page // 2 % n


def test_pages_in_no_known_order_are_interleaved() -> None:
    """Any other homes of theirs are by chance, and may be one node's."""
    found = carried(owned(dealt, 4, 256), owned(dealt, 8, 512))
    (region,) = planned(found)
    assert region.policy == "interleave" and {run.node for run in region.runs} == {0, 1, 2, 3}
    assert found.accesses.sum() == 2 * 512 * 100


def test_pages_in_no_known_order_stay_where_their_users_touch_them_first() -> None:
    found = carried(owned(dealt, 4, 256, by_users=True), owned(dealt, 8, 512, by_users=True))
    assert not planned(found)


def test_what_all_use_is_carried_over() -> None:
    everybody = [counts([list(range(n))] * 64) for n in (4, 8)]
    found = carried(*everybody)
    assert not found.unfollowed and set(found.thread) == set(range(WANTED))


def test_a_few_samples_do_not_say_that_pages_are_someones() -> None:
    """One page was seen twice, by one of eight who use all alike."""
    sampled = counts([[one] for one in (0, 3, 1, 7, 5, 2, 6, 4, 7, 0, 2, 5, 1, 6, 3, 4)])
    made = np.append(2, np.ones(15, np.int64))
    found = carried(counts([list(range(4))] * 16), replace(sampled, accesses=made, exact=False))
    assert not found.unfollowed


def test_a_plan_says_what_could_not_be_carried_over() -> None:
    recorded = [replace(workload(ring(n)), pages=owned(dealt, n, 64 * n)) for n in (4, 8)]
    found = facts_of(carry_over(recorded, WANTED))
    assert found.unfollowed == 1 and found.unfollowed_share == 1
    said = [line for line in scaling_lines(found) if line.startswith("unsure")]
    assert any("1 region (100.0% of accesses) could not be carried over" in line for line in said)


def blocks(page: int, n: int, pages: int) -> int:
    """One part each, in order."""
    return page * n // pages


def chunks(page: int, n: int, _: int) -> int:
    """Eight pages each in turn."""
    return page // 8 % n


def two_arrays(page: int, n: int, pages: int) -> int:
    return page * 2 * n // pages % n


def homes(pages: PageCounts) -> list[int]:
    """The node of each page."""
    (region,) = planned(pages)
    return [run.node for run in region.runs for _ in range(run.bytes // PAGE)]


def test_chunks_keep_the_size_that_recordings_show() -> None:
    """Of 128 pages four threads have four chunks each, eight have two, 16 one; none is stretched."""
    found = carried(owned(chunks, 4, 128), owned(chunks, 8, 128))
    assert homes(found) == [NODES[chunks(page, WANTED, 128)] for page in range(128)]
    (region,) = with_scales(planned(found), found, [], THREADS, NODES)
    assert not region.scales


def test_chunks_become_more_in_a_region_that_grows_faster_than_the_team() -> None:
    found = carried(owned(chunks, 4, 32), owned(chunks, 8, 128))
    assert homes(found) == [NODES[chunks(page, WANTED, 320)] for page in range(320)]


def test_arrays_in_one_block_become_no_more() -> None:
    found = carried(owned(two_arrays, 4, 128), owned(two_arrays, 8, 128))
    assert homes(found) == [NODES[two_arrays(page, WANTED, 128)] for page in range(128)]


@pytest.mark.parametrize("smaller", [two_arrays, dealt])
def test_recordings_that_contradict_each_other_carry_nothing_over(smaller: Owner) -> None:
    found = carried(owned(smaller, 4, 64), owned(blocks, 8, 128))
    (region,) = planned(found)
    assert region.policy == "interleave" and len(found.unfollowed) == 1


def test_what_a_smaller_recording_does_not_have_contradicts_nothing() -> None:
    unused = counts([[0]] * 128)
    found = carried(replace(unused, accesses=0 * unused.accesses), owned(blocks, 8, 128))
    assert homes(found) == [NODES[blocks(page, WANTED, 128)] for page in range(128)]


def test_members_at_the_ends_need_not_use_their_parts() -> None:
    """Of four stages of a pipeline two work on their part of a table, of eight six."""
    inner = [
        counts([[one] if 0 < (one := blocks(page, n, 16 * n)) < n - 1 else [] for page in range(16 * n)])
        for n in (4, 8)
    ]
    found = carried(*inner)
    used = found.thread[np.argsort(found.page, kind="stable")]
    assert not found.unfollowed and (np.diff(used) >= 0).all() and set(used) >= set(range(2, 14))
