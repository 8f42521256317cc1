"""The objective `time`: threads of pools, any of which may do any piece of work."""

import numpy as np
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from numaplan.mapper import Plan, PlanOptions, make_plan
from numaplan.mapper.memory.page_moves import SMALL_FOLLOWED
from numaplan.mapper.plan_file.summary import summary
from numaplan.mapper.planning.cost.counted_pages import CountedPages
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.planning.shares import local_shares
from numaplan.mapper.threads.problem import Nodes
from numaplan.mapper.workload.roles.pools import idle_twins
from numaplan.profiler import Machine
from tests.support.timed import BY_ROW, PAIRS, plan_of, plan_on, workload


def test_threads_of_a_pool_have_cpus_in_common_and_the_mean_is_predicted() -> None:
    work = workload(lines=PAIRS, users=[[0, 1, 2, 3]], keeps=False)
    plan = plan_of(work, "4x2")
    assert {thread.pool for thread in plan.threads} == {1}
    cpus = {thread.cpus for thread in plan.threads}
    assert len(cpus) == 1 and len(next(iter(cpus))) == 4  # two nodes hold it
    assert any(line.startswith("  pool 1 of 4 threads") for line in summary(plan))
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.predicted.memory_share == pytest.approx(0.5, abs=0.02)
    alone = {thread.pool for thread in plan_of(workload(lines=PAIRS), "4x2").threads}
    assert alone == {UNSET}


def test_idle_threads_that_were_made_as_a_pool_was_may_run_wherever_it_may() -> None:
    """Encoders make a thread for each cpu and kind of work: the last that waits gets the work, and which one
    that is differs from run to run."""
    work = workload(lines=PAIRS, users=[[0, 1, 2, 3]], keeps=False, threads=7)
    assert work.use is not None
    use = replace(work.use, accesses=np.array([1e7] * 4 + [1e3, 1e3, 1e7]))
    keeps = (False,) * 4 + (True,) * 3  # too little was seen of two, and the last one has a role
    threads = [*work.threads[:5], ("p0", "0.1.1"), work.threads[6]]  # another thread made one of them
    work = replace(work, use=use, keeps=keeps, threads=threads)
    planned = make_plan(work, Machine.load("4x2"), PlanOptions())
    found = planned.plan.threads
    assert [thread.pool for thread in found] == [1, 1, 1, 1, 1, UNSET, UNSET]
    assert len({thread.cpus for thread in found[:5]}) == 1
    assert any("4 threads are exchangeable" in note and "1 more, which" in note for note in planned.notes)


def test_an_idle_thread_whose_name_is_counted_is_of_the_pool_that_another_thread_made() -> None:
    """As in Java: the first of those that collect is made with the program, the others by who needs them."""
    threads = [("p0", path) for path in ("0", "0.1", "0.2", "0.2.1", "0.2.2", "0.3", "0.4")]
    pool = np.array([3, 4])
    accesses = np.array([1e7, 1e3, 1e3, 1e7, 1e7, 1e3, 1e7])
    names = ["java", "GC Thread#0", "VM Thread", "GC Thread#1", "GC Thread#2", "Finalizer", "Finalizer"]

    def found(names: list[str], pools: list[Nodes]) -> list[tuple[list[int], list[int], int]]:
        twins = idle_twins(threads, pools, names, accesses, np.zeros((7, 7)))
        return [(one.idle.tolist(), one.busy.tolist(), one.pool) for one in twins]

    beside = ([5], [6], -1)
    assert found(names, [pool]) == [([1], [3, 4], 0), beside]
    assert found(names, []) == [([1], [3, 4], -1), beside]
    assert found([name.partition("#")[0] for name in names], [pool]) == [beside]
    assert found(["pbzip2"] * 5 + names[5:], [pool]) == [beside]  # a number, but of the program's
    executors = ["java", "pool-1-thread-1", "java", "pool-2-thread-1", "pool-2-thread-2", *names[5:]]
    assert found(executors, [pool]) == [beside]


def test_threads_without_a_role_that_did_far_less_than_their_pool_may_run_where_it_may() -> None:
    """As compilers of a JVM: how many of them get much to do is chance."""
    threads = [("p0", "0"), *(("p0", f"0.{number}") for number in range(1, 6))]
    accesses = np.array([1e8, 1e8, 1e8, 1.5e7, 1e3, 1.5e7])
    keeps = [True, False, False, False, True, True]

    def idle(pools: list[Nodes], keeps: list[bool], partner: int = 1) -> list[list[int]]:
        lines = np.zeros((6, 6))
        lines[3, partner] = 1e6
        return [one.idle.tolist() for one in idle_twins(threads, pools, (), accesses, lines, keeps)]

    pool = np.array([1, 2])
    assert idle([pool], keeps) == [[3, 4]]
    assert idle([pool], keeps, partner=0) == [[4]]  # it belongs to who it talks to
    assert idle([pool], []) == [[4]]
    assert idle([], keeps) == [[4]]  # nothing that they are of


def test_a_thread_is_idle_though_it_took_some_lines_to_begin_and_to_end() -> None:
    threads = [("p0", "0"), *(("p0", f"0.{number}") for number in range(1, 5))]
    accesses = np.array([1e6, 1e8, 1e3, 1e8, 1e3])

    def idle(lines: float) -> list[int]:
        taken = np.array([1000.0, 400, 30, 400, lines])[:, None] * np.eye(5)[0]
        return [int(one) for twins in idle_twins(threads, [], (), accesses, taken) for one in twins.idle]

    assert idle(40) == [2, 4]
    assert idle(300) == [2]  # it talks


def test_threads_of_a_pool_that_come_back_to_what_they_touched_first_stay_on_a_node() -> None:
    work = workload(lines=PAIRS, users=[[0, 1, 2, 3]], keeps=False)
    assert work.pages is not None
    rows = np.flatnonzero(work.pages.page % 4 == work.pages.thread)  # each page has one user, who touches it
    columns = {name: getattr(work.pages, name)[rows] for name in BY_ROW if name != "toucher"}
    pages = replace(work.pages, **columns, toucher=work.pages.thread[rows])
    work = replace(work, pages=pages)
    plan = plan_of(work, "4x2")
    assert {thread.pool for thread in plan.threads} == {1}
    assert sorted(thread.cpus for thread in plan.threads) == [(0, 1), (0, 1), (2, 3), (2, 3)]
    assert plan.memory == () and plan.predicted.memory_share == 1.0  # whoever they are, they come back


def test_a_pool_is_on_as_many_cpus_as_it_runs_threads() -> None:
    task, _ = plan_task(workload(keeps=False), Machine.load("2x4"), PlanOptions())
    cpus = TimedTask(task).cpus
    assert cpus.spread(np.array([0, 0, 0, 1])).tolist() == [0, 0, 1, 1]
    task, _ = plan_task(workload(keeps=False), Machine.load("4x2"), PlanOptions())
    cpus = TimedTask(task).cpus
    assert cpus.spread(np.array([1, 1, 1, 1])).tolist() == [1, 1, 1, 1]
    assert cpus.spread(np.array([1, 1, 1, 1]), wider=True).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("pinned", [3, 4])
def test_pins_hold_in_a_pool_of_which_few_or_none_are_left(pinned: int) -> None:
    pins = {f"0.{number}" if number else "0": f"cpu:{3 - number}" for number in range(pinned)}
    work = workload(lines=PAIRS, users=[[0, 1, 2, 3]], keeps=False)
    planned = make_plan(work, Machine.load("2x2"), PlanOptions(pins=pins))
    threads = planned.plan.threads[:pinned]
    assert [thread.cpus for thread in threads] == [(3 - number,) for number in range(pinned)]
    assert not any("none has a cpu of its own" in note for note in planned.notes)


@pytest.mark.parametrize("threads", [2, 8])
def test_a_thread_of_a_pool_is_on_the_node_that_it_is_pinned_to(threads: int) -> None:
    work = workload(threads, users=[list(range(threads))] * 4, keeps=False)
    plan = plan_of(work, "2x4", pins={"0.1": "1"})
    assert (plan.threads[1].node, plan.threads[1].cpus, plan.threads[1].pool) == (1, (4, 5, 6, 7), UNSET)
    assert plan.threads[0].pool == 1
    if threads == 2:  # no other thread of the pool is there
        assert plan.threads[0].cpus == (0, 1, 2, 3)


def test_a_pool_is_taken_to_be_in_all_its_caches_alike() -> None:
    content = {
        "schema": "numaplan/machine/1",
        "nodes": [{"id": 0, "cpus": list(range(4))}],
        "cores": [{"cpus": [cpu], "node": 0, "l3": cpu // 2} for cpu in range(4)],
    }
    work = workload(lines=PAIRS, users=[[0, 1, 2, 3]], keeps=False)
    assert plan_on(content, work).alone  # the kernel has them there, too
    plan = plan_on(content, work, method="compact")
    assert {len(thread.cpus) for thread in plan.threads} == {4}
    assert plan.predicted.cache_share == pytest.approx(0.5)


def test_who_sets_up_memory_alone_keeps_its_node_though_it_is_of_a_pool() -> None:
    lines = {(one, other): 1e6 for one in range(8) for other in range(one)}
    work = workload(8, lines, users=[list(range(8))], keeps=False)
    assert work.pages is not None and work.pages.before is not None
    begun = replace(work.pages, before=2000 * work.pages.before, missed_before=400 * work.pages.before)
    threads = plan_of(replace(work, pages=begun), "4x4").threads
    assert threads[0].pool is UNSET and len(threads[0].cpus) == 4
    assert {thread.pool for thread in threads[1:]} == {1}
    assert all(len(thread.cpus) == 8 for thread in threads[1:])


def test_under_a_plan_stacks_are_with_threads_that_keep_to_a_node() -> None:
    work = workload(users=[list(range(4))], keeps=False)
    assert work.pages is not None
    made = np.zeros((4, 4))
    made[:, 0] = 100.0  # the first thread made the others, and touched the tops of their stacks
    pages = replace(work.pages, elsewhere=made, restacked=100 * np.eye(4) - made, elsewhere_missed=0 * made)
    rows = np.array([0, 0, 1, 1])

    def away(pool: list[int], *, planned: bool = True) -> float:
        found = CountedPages(
            replace(pages, accesses=0 * pages.accesses), [np.array(pool)] * bool(pool), work.threads
        )
        of = found.first_touch_traffic if planned else found.kernel_traffic
        traffic = of(rows, 2, every=True)
        return float(traffic.sum() - traffic[np.arange(4), rows].sum())

    assert away([], planned=False) == pytest.approx(200 * (1 - SMALL_FOLLOWED))  # the kernel brings some
    assert away([]) == 0
    assert away([2, 3]) == 200  # they go from node to node, and so have no node for their stacks
    on_memory = CountedPages(pages, [], work.threads)
    assert on_memory.stats.restacked is None  # what is in a stack stays in its thread's cache


def test_of_a_pool_that_uses_what_one_of_it_set_up_few_have_a_seat_beside_it() -> None:
    work = workload(8, users=[list(range(8))], keeps=False)
    assert work.pages is not None and work.pages.before is not None
    begun = 2000 * work.pages.before
    pages = replace(work.pages, before=begun, missed_before=begun / 5, toucher=0 * work.pages.thread)
    found = CountedPages(pages, [np.arange(8)], work.threads)
    assert found.tied.tolist() == [0]
    rows = np.repeat(np.arange(4), 2)
    traffic = found.first_touch_traffic(rows, 4)
    assert traffic[1:, 1:].sum() == 0  # all of it is beside the first thread
    near = found.near(rows)[1:, 0]
    assert near.tolist() == pytest.approx([1 / 7] * 7)  # one of seven shares its node


def test_memory_may_be_placed_on_a_node_without_threads_of_the_pool() -> None:
    """Such as with idle threads, which are moved to where nobody else is."""
    task, _ = plan_task(
        workload(lines=PAIRS, users=[[0, 1, 2, 3]], keeps=False), Machine.load("4x2"), PlanOptions()
    )
    timed = TimedTask(task)
    pages = timed.placed("there", np.array([3, 3, 3, 3])).pages
    assert pages is not None and {run.node for region in pages.memory for run in region.runs} == {3}
    left = timed.pages.better_touched(pages.tables, np.array([0, 0, 1, 1]), 4)
    assert [site.name for site in left] == ["r0"]


def test_who_goes_from_node_to_node_leaves_what_was_its_own() -> None:
    pool = np.arange(4)
    work = workload(users=[list(range(4))], keeps=False)
    assert work.pages is not None
    apart = np.eye(4) * 1000
    pages = replace(work.pages, elsewhere=apart, elsewhere_missed=apart)  # small blocks of each
    found = CountedPages(pages, [pool], work.threads)
    assert found.staying == [False]
    rows = np.array([0, 0, 1, 1])
    near = found.near(rows)
    assert near[2, 2] == near[2, 3] == pytest.approx((1 / 3 * 3 + 1) / 4)
    assert CountedPages(pages, [], work.threads).near(rows)[2].tolist() == [0, 0, 1, 1]
    found.tied = pool  # all keep to their place: nobody is left who goes
    assert found.near(rows)[2].tolist() == pytest.approx([1 / 3, 1 / 3, 1, 1 / 3])


def test_who_goes_from_node_to_node_for_want_of_cpus_is_not_expected_to_find_its_memory_there() -> None:
    """Five threads that come back to what they touched first, on two nodes with four cpus."""
    work = workload(5, users=[list(range(5))], keeps=False)
    assert work.pages is not None
    rows = np.flatnonzero(work.pages.page % 5 == work.pages.thread)
    columns = {name: getattr(work.pages, name)[rows] for name in BY_ROW}
    work = replace(work, pages=replace(work.pages, **columns, toucher=work.pages.thread[rows]))
    timed = TimedTask(plan_task(work, Machine.load("2x2"), PlanOptions())[0])
    assert timed.pages.staying == [True]
    placed = timed.first_touched("three and two", np.array([0, 0, 0, 1, 1]))
    assert placed.roams and {len(cpus) for cpus in placed.cpus} == {4}
    local, memory_local = local_shares(timed, placed)
    assert local == pytest.approx((3 * 0.6 + 2 * 0.4) / 5, abs=1e-3) and memory_local == pytest.approx(
        local, abs=1e-3
    )
    assert timed.again(placed).traffic == pytest.approx(placed.traffic)


def test_threads_that_nothing_tells_apart_keep_no_memory_of_their_own() -> None:
    """Go's threads come in another order in each run: which of them gets whose memory is chance."""
    work = workload(lines=PAIRS, users=[[0], [1], [2], [3]], keeps=False)
    assert work.pages is not None
    own = replace(work, pages=replace(work.pages, toucher=work.pages.thread))
    staying = plan_of(own, "4x2")
    assert staying.predicted.memory_share == pytest.approx(1.0)
    plan = plan_of(replace(own, unordered=True), "4x2")
    nodes = {cpu // 2 for thread in plan.threads for cpu in thread.cpus}
    assert {len(thread.cpus) for thread in plan.threads} == {2 * len(nodes)} and not plan.memory
    assert len(nodes) > 1 and plan.predicted.memory_share == pytest.approx(1 / len(nodes))
    assert not any(name.endswith(("shared spread", "partly first touch")) for name in plan.predicted.costs)


@pytest.mark.parametrize(("threads", "keeps"), [(1, False), (1, True), (4, True)])
def test_a_go_program_without_a_pool_is_planned(threads: int, keeps: bool) -> None:
    work = workload(threads=threads, users=[[number] for number in range(threads)], keeps=keeps)
    work = replace(work, unordered=True)
    assert {region.policy for region in plan_of(work).memory} <= {"interleave"}
    asked = plan_of(work, place_all=True)  # by somebody who knows better
    assert threads == 1 or "bind" in {region.policy for region in asked.memory}
