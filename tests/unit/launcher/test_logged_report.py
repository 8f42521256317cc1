"""What the report makes of the logs of enforce.so."""

import errno
from pathlib import Path

import msgspec

from numaplan.launcher.enforce.plan_table import encode
from numaplan.launcher.verify.applied import Applied, warning_of
from numaplan.launcher.verify.logged_run import LoggedRegion, LoggedRun, LoggedThread
from numaplan.launcher.verify.report import make_report
from numaplan.mapper import (
    Plan,
)
from tests.support.small_plans import HEAP, STATIC, locate, plan_of, rule, with_rules


def logged_of(plan: Plan, cpus: dict[str, tuple[int, ...]], error: int = 0) -> LoggedRun:
    planned = {thread.path for thread in plan.threads}
    logged = LoggedRun(processes=["p0"])
    for path, which in cpus.items():
        logged.threads["p0", path] = LoggedThread("p0", path, 1, which, path in planned, error)
    return logged


def report(plan: Plan, logged: LoggedRun) -> Applied:
    return make_report(plan, encode(plan, {}, locate), logged, 0, ())


def test_all_as_planned() -> None:
    plan = plan_of((HEAP, "bind"))
    logged = logged_of(plan, {"0": (0,), "0.1": (2,)})
    logged.regions[0] = LoggedRegion(1 << 20, 0, {(0, 0): 1 << 19, (1, 1): 1 << 19})
    applied = report(plan, logged)
    assert applied.ok and applied.reasons == () and warning_of(applied, plan) == ""
    assert applied.summary == "2/2 threads, 100 % of 1.05 MB as planned"
    assert applied.memory[0].planned == applied.memory[0].actual == {"0": 1 << 19, "1": 1 << 19}
    assert msgspec.json.decode(applied.to_json())["threads"][1] == {
        "path": "0.1",
        "planned": [2],
        "applied": [2],
        "tid": 1,
    }


def test_what_the_plan_has_a_place_for_is_said_beside() -> None:
    plan = plan_of((HEAP, "bind"), (STATIC, "bind"))
    shares = zip(plan.memory, (0.5, 0.2), strict=True)
    memory = tuple(msgspec.structs.replace(region, share=share) for region, share in shares)
    plan = msgspec.structs.replace(plan, memory=memory)
    logged = logged_of(plan, {"0": (0,), "0.1": (2,)})
    rows = encode(plan, {}, locate).regions
    for row, region in enumerate(rows):
        logged.regions[row] = LoggedRegion(region.region.bytes, 0, {(0, 0): 4096})
    logged.memory = 4 << 20, 3 << 20
    applied = report(plan, logged)
    assert applied.ok
    assert (applied.memory_bytes, applied.memory_share, applied.access_share) == (4 << 20, 0.75, 0.7)
    assert applied.summary.endswith("as planned; the plan places 75% of the memory and 70% of the accesses")
    del logged.regions[[region.region for region in rows].index(HEAP)]
    fewer = report(plan, logged)
    assert not fewer.ok and fewer.access_share == 0.2
    assert fewer.reasons == ("1 of 2 planned regions never appeared",)


def test_most_regions_that_never_appeared_are_a_reason() -> None:
    plan = plan_of((HEAP, "bind"), (STATIC, "bind"))
    logged = logged_of(plan, {"0": (0,), "0.1": (2,)})
    applied = report(plan, logged)
    assert not applied.ok and applied.reasons == ("2 of 2 planned regions never appeared",)
    logged.memory = 1 << 20, 0
    applied = report(plan, logged)
    assert not applied.ok
    reason = "2 of 2 planned regions never appeared: is this another input than the recorded one?"
    assert applied.reasons == (reason,)
    assert warning_of(applied, plan) == reason


def test_of_a_process_that_is_followed_from_outside_no_region_is_missed() -> None:
    plan = plan_of((HEAP, "bind"), (STATIC, "bind"))
    logged = logged_of(plan, {"0": (0,), "0.1": (2,)})
    logged.outside.add("p0")
    applied = report(plan, logged)
    assert not applied.ok and applied.reasons == ()
    assert applied.summary == "2/2 threads as planned"
    logged.sandboxed["p0"] = "later threads were bound from outside"  # the library saw those before
    assert "2 of 2 planned regions never appeared" in report(plan, logged).reasons


def test_pages_on_another_node_are_not_as_planned() -> None:
    plan = plan_of((HEAP, "bind"))
    logged = logged_of(plan, {"0": (0,), "0.1": (2,)})
    logged.regions[0] = LoggedRegion(1 << 20, 0, {(0, 0): 1 << 19, (1, 0): 1 << 18, (1, -1): 1 << 18})
    applied = report(plan, logged)
    assert not applied.ok
    text = "2/2 threads, 66.6 % of 786 KB as planned; 262 KB on node 0 instead of 1"
    assert applied.summary.partition(": ")[0] == text
    assert applied.memory[0].actual == {"0": 3 << 18}
    assert "on other nodes" in applied.reasons[0]


def test_a_node_that_was_full_while_it_ran_is_the_reason() -> None:
    plan = plan_of((HEAP, "bind"))
    logged = logged_of(plan, {"0": (0,), "0.1": (2,)})
    logged.regions[0] = LoggedRegion(1 << 20, 0, {(0, 0): 1 << 19, (1, 0): 1 << 19})
    logged.full = {1}
    applied = report(plan, logged)
    assert applied.summary.endswith("524 KB on node 0 instead of 1: node 1 was full")
    assert applied.reasons == ("heap app+0x12ab: 524 KB on other nodes: node 1 was full",)


def test_reasons_are_those_of_the_system_that_it_ran_on(tmp_path: Path) -> None:
    """Not of the one that reports: the lab's guest has nodes and cpus that the host has not."""
    plan = plan_of((HEAP, "bind"), (STATIC, "bind"))
    logged = logged_of(plan, {"0": (1,), "0.1": (2,)})
    rows = {region.region: row for row, region in enumerate(encode(plan, {}, locate).regions)}
    logged.regions[rows[HEAP]] = LoggedRegion(1 << 20, 0, {(0, 0): 1 << 19, (1, 0): 1 << 19})
    logged.regions[rows[STATIC]] = LoggedRegion(8192, errno.EINVAL, {})
    (tmp_path / "sys/devices/system/node/node0").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu").mkdir()
    (tmp_path / "sys/devices/system/cpu/online").write_text("1-3")
    applied = make_report(plan, encode(plan, {}, locate), logged, 0, (), root=tmp_path)
    assert applied.summary.endswith("524 KB on node 0 instead of 1: there is no node 1")
    assert f"{plan.memory[1].title}: there is no node 1" in applied.reasons
    assert "thread 0 is not on cpus 0: cpu 0 is offline" in applied.reasons
    unknown = make_report(plan, encode(plan, {}, locate), logged, 0, (), root=tmp_path / "nothing")
    assert unknown.summary.endswith("524 KB on node 0 instead of 1")
    assert "thread 0 is not on cpus 0: the program set its own affinity" in unknown.reasons


def test_a_rule_has_as_many_blocks_as_came() -> None:
    plan = with_rules(plan_of(), rule(HEAP, 0, None))
    logged = logged_of(plan, {"0": (0,), "0.1": (2,)})
    logged.regions[0] = LoggedRegion(30 << 20, 0, {(0, 0): 1 << 19, (1, 1): 1 << 19}, blocks=30)
    applied = report(plan, logged)
    assert applied.ok and applied.reasons == ()
    (entry,) = applied.memory
    assert (entry.blocks, entry.planned) == (30, {"0": 15 << 20, "1": 15 << 20})
    del logged.regions[0]
    applied = report(plan, logged)
    assert not applied.ok and not applied.memory[0].appeared


def test_interleaved_pages_may_be_on_any_of_their_nodes() -> None:
    plan = plan_of((HEAP, "interleave"))
    logged = logged_of(plan, {"0": (0,), "0.1": (2,)})
    logged.regions[0] = LoggedRegion(1 << 20, 0, {(0, 1): 1 << 19, (1, 0): 1 << 19})
    assert report(plan, logged).ok


def test_what_went_wrong_is_said() -> None:
    plan = plan_of((HEAP, "bind"), threads=4)
    logged = logged_of(plan, {"0": (0,), "0.1": (0, 1), "0.9": (0,), "0.2": (3,)}, errno.EINVAL)
    applied = report(plan, logged)
    assert not applied.ok and applied.missing == ("p0/0.3",)
    assert [thread.path for thread in applied.unplanned] == ["0.9"]
    assert any("cpuset" in reason for reason in applied.reasons)
    line = warning_of(applied, plan)
    assert "1 thread is not in the plan (0.9)" in line and "(0.3)" in line and "\n" not in line
    assert line.count("not in the plan") == line.count("threads never appeared") == 1
    assert applied.reasons[-2:] == (
        "1 thread is not in the plan (0.9)",
        "1 of 4 planned threads never appeared (0.3)",
    )
    assert applied.summary.startswith("1/4 threads")


def test_threads_that_follow_planned_ones_are_told_apart() -> None:
    plan = plan_of()
    logged = logged_of(plan, {"0": (0,), "0.1": (2,), "0.2": (2,), "0.3": (0, 1, 2, 3)})
    logged.threads["p0", "0.2"].follows = True
    applied = report(plan, logged)
    said = "2 threads are not in the plan (0.2, 0.3)"
    assert not applied.ok
    assert applied.reasons == (f"{said}: 1 of them have the cpus of planned ones that had ended",)
    assert warning_of(applied, plan) == said


def test_a_program_that_never_loaded_the_library() -> None:
    plan = plan_of()
    applied = report(plan, LoggedRun())
    assert not applied.ok and "did not load the library" in applied.reasons[0]
    assert applied.summary == "0/2 threads as planned"
