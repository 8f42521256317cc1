"""Whether `nmap check` judges the memory, the cpus and all threads of a plan by the expected cost."""

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.common import UsageError
from numaplan.mapper import Plan, PlanOptions, Workload, make_plan
from numaplan.mapper.memory.planned_tables import planned_tables
from numaplan.mapper.plan_file.parts import Blocks, PlanRegion, Run, Scales
from numaplan.mapper.planning.cost.planned import Seat, lanes_by_plans, planned_placement, seats_of
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.judge.check import Verdict, check_plan_today
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.workload.lifetimes.lanes import lanes_of
from numaplan.profiler import Machine
from tests.support.timed import BY_ROW, PAGE, PAGES, PAIRS, plan_of, workload

MACHINE = Machine.load("2x2")
SIZE = PAGES * PAGE


def judge(plan: Plan, work: Workload, machine: str = "2x2", *, strict: bool = False) -> Verdict:
    return check_plan_today(
        plan, work, Machine.load(machine), 0.05, seed=0, effort="normal", name="plan.json", strict=strict
    )


def generations(count: int, lines: float = 1e6) -> Workload:
    """Four threads of main that exchange lines in pairs, and as many that follow them, `count` times."""
    threads = 1 + 4 * count
    pairs = {(at + one, at + other): lines for at in range(1, threads, 4) for one, other in ((0, 2), (1, 3))}
    lives = tuple(
        (0, -1) if not at else (10 * ((at - 1) // 4) + 1, 10 * ((at - 1) // 4) + 9) for at in range(threads)
    )
    return replace(workload(threads, lines=pairs), lives=lives)


def runs_on(node: int) -> tuple[Run, ...]:
    return (Run(offset=0, bytes=SIZE, node=node),)


@pytest.mark.parametrize("users", [[[0], [1], [2], [3]], [[0, 1, 2, 3]], []])
@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("machine", ["2x2", "4x1", "1x4"])
def test_a_plan_is_as_good_as_today_s_best_with_its_own_recording(
    users: list[list[int]], keeps: bool, machine: str
) -> None:
    work = workload(lines=PAIRS, users=users, keeps=keeps)
    plan = plan_of(work, machine)
    verdict = judge(plan, work, machine, strict=True)
    assert verdict.ok and verdict.regress == 0
    assert verdict.baseline.cost == verdict.best.cost == pytest.approx(plan.predicted.cost)
    assert verdict.reason.startswith("costs 0.0% more")


def test_first_touch_that_a_plan_chose_is_not_judged_as_if_it_had_placed_pages() -> None:
    """Threads of a pool use any page: homes for these are another's in the next run."""
    work = workload(8, users=[[0], [1], [2], [3], [4], [5], [6], [7]])
    assert work.pages is not None
    own = replace(work, pages=replace(work.pages, toucher=work.pages.thread), keeps=(False,) * 8)
    plan = plan_of(own, "4x2", method="scatter")
    assert judge(plan, own, "4x2").regress == pytest.approx(0)
    bare = msgspec.structs.replace(plan, memory=())
    assert judge(bare, own, "4x2").baseline.cost == pytest.approx(
        plan.predicted.costs["scatter, first touch"]
    )


def test_a_pool_that_goes_from_node_to_node_is_costed_like_that() -> None:
    """Five threads that come back to what they touched first, on two nodes with four cpus."""
    work = workload(5, users=[list(range(5))], keeps=False)
    assert work.pages is not None
    rows = np.flatnonzero(work.pages.page % 5 == work.pages.thread)
    columns = {name: getattr(work.pages, name)[rows] for name in BY_ROW}
    own = replace(work, pages=replace(work.pages, **columns, toucher=work.pages.thread[rows]))
    timed = TimedTask(plan_task(own, MACHINE, PlanOptions(objective="time"))[0])
    chosen = timed.first_touched("three and two", np.array([0, 0, 0, 1, 1]))
    seats = [Seat(int(place), cpus) for place, cpus in zip(chosen.places, chosen.cpus, strict=True)]
    found, missing = planned_placement(timed, "again", seats, ())
    assert chosen.roams and found.roams and missing == ()
    assert found.cost.total_ns == pytest.approx(chosen.cost.total_ns)
    bound = [Seat(seat.node, MACHINE.nodes[seat.node].cpus) for seat in seats]
    assert not planned_placement(timed, "bound", bound, ())[0].roams


def test_threads_are_at_the_caches_of_their_cpus() -> None:
    content = {
        "schema": "numaplan/machine/1",
        "nodes": [{"id": 0, "cpus": list(range(8))}],
        "cores": [{"cpus": [cpu], "node": 0, "l3": cpu // 2} for cpu in range(8)],
    }
    work, machine = workload(lines=PAIRS), Machine.from_dict(content)
    plan = make_plan(work, machine, PlanOptions()).plan

    def regress(cpus: list[int]) -> float:
        threads = [
            msgspec.structs.replace(thread, cpus=(cpu,))
            for thread, cpu in zip(plan.threads, cpus, strict=True)
        ]
        moved = msgspec.structs.replace(plan, threads=tuple(threads))
        return check_plan_today(moved, work, machine, 0.05, seed=0, effort="normal", name="p").regress

    assert regress([0, 2, 3, 1]) == 0 < regress([0, 1, 2, 3])


def test_memory_on_a_far_node_costs() -> None:
    work = workload(lines=PAIRS, users=[[1], [3]])
    plan = plan_of(work)
    homes = [region.runs[0].node for region in plan.memory]
    wrong = [
        msgspec.structs.replace(region, runs=runs_on(1 - homes[at])) for at, region in enumerate(plan.memory)
    ]
    verdict = judge(msgspec.structs.replace(plan, memory=tuple(wrong)), work, strict=True)
    assert judge(plan, work).regress == 0 < verdict.regress
    assert verdict.baseline.cost > plan.predicted.cost


def test_threads_of_a_node_on_one_cpu_wait_for_each_other() -> None:
    work = workload(users=[[0], [1], [2], [3]])
    plan = plan_of(work)
    first = {thread.node: thread.cpus[:1] for thread in reversed(plan.threads)}
    crowded = [msgspec.structs.replace(thread, cpus=first[thread.node]) for thread in plan.threads]
    verdict = judge(msgspec.structs.replace(plan, threads=tuple(crowded)), work)
    assert not verdict.ok and verdict.regress > 1


def test_today_s_best_is_the_cheaper_of_both() -> None:
    """A plan may be cheaper than what is found today: nothing is lost then, and less than nothing neither."""
    work = workload(lines=PAIRS, users=[[1], [3]])
    plan = plan_of(work)
    options = {"options": {"pins": {"0": "0", "0.1": "0", "0.2": "1", "0.3": "1"}}}
    verdict = judge(msgspec.structs.replace(plan, provenance=options), work, strict=True)
    assert verdict.ok and verdict.regress == verdict.loss == 0
    assert verdict.today.predicted.cost > verdict.best.cost == verdict.baseline.cost
    assert "costs 0.0% more" in verdict.reason


@pytest.mark.parametrize("objective", ["time", "balanced", "remote"])
def test_a_plan_for_threads_that_follow_one_another_is_judged(objective: str) -> None:
    work = generations(3)
    plan = plan_of(work, "2x4", objective=objective)
    assert len(plan.threads) == 13 and judge(plan, work, "2x4", strict=True).regress == 0


@pytest.mark.parametrize("objective", ["time", "remote"])
def test_threads_that_follow_others_are_judged_where_the_plan_has_them(objective: str) -> None:
    work = generations(3)
    plan = plan_of(work, "2x4", objective=objective)
    nodes = {node.id: node.cpus for node in plan.machine.nodes}
    apart = [  # the last four, each pair of which is on two nodes
        thread if at < 9 else msgspec.structs.replace(thread, node=(at - 9) // 2, cpus=nodes[(at - 9) // 2])
        for at, thread in enumerate(plan.threads)
    ]
    assert not judge(msgspec.structs.replace(plan, threads=tuple(apart)), work, "2x4").ok


def test_one_more_generation_follows_those_of_the_plan() -> None:
    plan = plan_of(generations(2), "2x4", objective="remote")
    assert judge(plan, generations(3), "2x4", strict=True).regress == 0
    more = generations(3)
    threads = [*more.threads[:-1], ("p0", "0.1.1")]
    with pytest.raises(UsageError, match=r"1 of today's 13 threads are not in it \(first: p0 0.1.1\)"):
        judge(plan, replace(more, threads=threads), "2x4")


def test_lanes_of_plans_that_seat_lanes_alike_are_the_usual_ones() -> None:
    work = generations(3)
    plan = plan_of(work, "2x4", objective="remote")
    seats = seats_of(plan, work, "plan")
    lane = lanes_by_plans(work, PlanOptions(), Machine.load("2x4"), [seats])
    assert lane.tolist() == lanes_of(work.threads, work.lives).tolist()


def test_a_cpu_that_the_plan_s_options_leave_out_is_refused() -> None:
    work = workload(lines=PAIRS, users=[[1], [3]])
    plan = make_plan(work, Machine.load("2x4"), PlanOptions(without_cpus=(3,))).plan
    assert judge(plan, work, "2x4").regress == 0
    at = next(at for at, thread in enumerate(plan.threads) if thread.node == 0)
    threads = list(plan.threads)
    threads[at] = msgspec.structs.replace(threads[at], cpus=(3,))
    with pytest.raises(UsageError, match="has cpu 3, which the plan's options leave out"):
        judge(msgspec.structs.replace(plan, threads=tuple(threads)), work, "2x4")


def test_memory_that_is_not_there_today_is_told() -> None:
    work = workload(lines=PAIRS, users=[[1], [3]])
    plan = plan_of(work)
    assert work.pages is not None and judge(plan, work).notes == []
    moved = [msgspec.structs.replace(key, name=f"{key.name}-moved") for key in work.pages.regions]
    verdict = judge(plan, replace(work, pages=replace(work.pages, regions=moved)))
    assert verdict.notes == [
        "plan.json places 2 regions with 100% of its recording's accesses that today's run does not have"
    ]
    assert verdict.regress > 0


def tables(entry: PlanRegion, **today: object) -> list[list[int]]:
    """Homes of the pages of each of today's regions that the entry places; thread 3 touched all of them."""
    pages = workload(users=[[1], [1]]).pages
    assert pages is not None
    regions = [msgspec.structs.replace(key, **today) for key in pages.regions]
    stats = replace(pages, regions=regions, toucher=np.full(len(pages), 3))
    found = planned_tables([entry], stats, np.array([0, 0, 1, 1]), MACHINE)
    assert bool(found.missing) == (not found.tables)
    return [table.homes_of(np.arange(PAGES)).tolist() for table in found.tables.values()]


def test_regions_are_found_by_what_is_the_same_in_each_run() -> None:
    assert workload(users=[[1]]).pages
    key = workload(users=[[1]]).pages.regions[0]  # type: ignore[union-attr]
    entry = PlanRegion(region=key, policy="bind", runs=runs_on(0))
    assert tables(entry) == tables(entry, build_id="bb") == [[0] * PAGES]
    assert tables(entry, thread="0.1") == []
    static = msgspec.structs.replace(key, kind="static", build_id="aa")
    data = PlanRegion(region=static, policy="bind", runs=runs_on(0))
    assert tables(data, kind="static", build_id="aa", thread="0.1") == [[0] * PAGES]
    assert tables(data, kind="static", build_id="bb") == []  # as the launcher
    rule = PlanRegion(
        region=msgspec.structs.replace(key, sequence=None),
        policy="bind",
        runs=runs_on(0),
        blocks=Blocks(least=PAGE, most=SIZE),
    )
    assert len(tables(rule, name="r0")) == 2
    assert tables(rule, name="r0", bytes=SIZE + 1) == []


def test_what_a_region_has_beyond_its_planned_size_is_where_it_is_touched_first() -> None:
    pages = workload(users=[[1]]).pages
    assert pages is not None
    half = PlanRegion(
        region=msgspec.structs.replace(pages.regions[0], bytes=SIZE // 2),
        policy="bind",
        runs=(Run(offset=0, bytes=SIZE // 2, node=0),),
    )
    rest = PAGES // 2
    assert tables(half) == [[0] * rest + [1] * rest]
    assert tables(msgspec.structs.replace(half, scales=Scales(known="shares"))) == [[0] * PAGES]
