"""The plan table: rows as enforce.so reads them; and what the report makes of the logs."""

import errno
import struct

import msgspec
import pytest

from numaplan.launcher.enforce.plan_table import encode, name_hash
from numaplan.launcher.enforce.process_memory import memory_nodes
from numaplan.launcher.verify.applied import Applied, warning_of
from numaplan.launcher.verify.logged_run import LoggedRegion, LoggedRun, LoggedThread
from numaplan.launcher.verify.report import make_report
from numaplan.machine import Machine
from numaplan.mapper import (
    Blocks,
    Plan,
    PlanApp,
    PlanMachine,
    PlanRegion,
    PlanThread,
    Predicted,
    RegionKey,
    Run,
    Scales,
)

HEAP = RegionKey(kind="heap", name="app+0x12ab", bytes=1 << 20, thread="0.1", sequence=3)
STATIC = RegionKey(kind="static", name="app:table", bytes=8192, build_id="aabbccddeeff00112233")
STACK = RegionKey(kind="stack", name="0.1", bytes=8 << 20, thread="0.1")


def plan_of(*regions: tuple[RegionKey, str], threads: int = 2) -> Plan:
    """Threads on node 0 and 1 in turn; each region half on node 0 and half on node 1."""
    machine = Machine.load("2x2")
    return Plan(
        app=PlanApp(threads=threads),
        machine=PlanMachine.of(machine),
        method="best",
        objective="remote",
        threads=tuple(
            PlanThread(path="0" if n == 0 else f"0.{n}", thread=n, node=n % 2, cpus=(2 * (n % 2),), load=1.0)
            for n in range(threads)
        ),
        memory=tuple(
            PlanRegion(
                region=key,
                policy=policy,  # type: ignore[arg-type]
                runs=(
                    Run(offset=0, bytes=key.bytes // 2, node=0),
                    Run(offset=key.bytes // 2, bytes=key.bytes // 2, node=1),
                ),
            )
            for key, policy in regions
        ),
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )


def locate(module: str, symbol: str) -> tuple[int, str] | None:
    return (0x4000, "aabbccddeeff00112233") if (module, symbol) == ("app", "table") else None


def test_name_hash_is_fnv() -> None:
    assert name_hash("") == 0xCBF29CE484222325
    assert name_hash("a") == 0xAF63DC4C8601EC8C
    assert name_hash("foobar") == 0x85944171F73967E8


def test_rows_and_their_order() -> None:
    plan = plan_of((HEAP, "bind"), (STATIC, "interleave"), threads=3)
    table = encode(plan, {"": (0, 1, 2, 3), "p0": (0, 1)}, locate)
    magic, version, threads, cpus, regions, runs, nodes, size = struct.unpack_from("<8s6IQ", table.data)
    assert (magic, version, threads, cpus, regions, runs, nodes) == (b"NUMAPLPF", 2, 5, 9, 2, 4, 2)
    assert size == len(table.data) == 64 + 5 * 32 + 2 * 64 + 4 * 24 + 9 * 4
    rows = [struct.unpack_from("<QQIIiI", table.data, 64 + 32 * n) for n in range(threads)]
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    assert {row[:2] for row in rows} == {
        (0, 0),
        (name_hash("p0"), 0),
        *((name_hash("p0"), name_hash(path)) for path in ("0", "0.1", "0.2")),
    }
    heap = struct.unpack_from("<QQQQQQIIIHH", table.data, 64 + 5 * 32 + 64 * table_row(table.regions, HEAP))
    assert heap[1:5] == (name_hash("0.1"), name_hash("app"), 0x12AB, 1 << 20)
    assert heap[8:] == (3, 1, 1)
    static = struct.unpack_from(
        "<QQQQQQIIIHH", table.data, 64 + 5 * 32 + 64 * table_row(table.regions, STATIC)
    )
    assert static[1:4] == (0, name_hash("app"), 0x4000)
    assert static[5] == int.from_bytes(bytes.fromhex("aabbccddeeff0011"), "little")
    assert static[9:] == (4, 3)


def test_regions_that_scale_say_so_in_their_row() -> None:
    plan = plan_of((HEAP, "bind"))
    scaled = msgspec.structs.replace(plan.memory[0], scales=Scales(known="shares"))
    rows = []
    for memory in (plan.memory, (scaled,)):
        found = encode(msgspec.structs.replace(plan, memory=memory), {}, locate)
        header, threads = 64, 32 * len(plan.threads)
        rows.append(struct.unpack_from("<QQQQQQIIIHBB", found.data, header + threads))
    assert [row[-1] for row in rows] == [0, 1] and rows[0][:-1] == rows[1][:-1]


def rule(key: RegionKey, least: int, most: int | None) -> PlanRegion:
    """A rule for blocks of these sizes: the first half on node 0, the rest on node 1."""
    runs = (
        Run(offset=0, bytes=key.bytes // 2, node=0),
        Run(offset=key.bytes // 2, bytes=key.bytes // 2, node=1),
    )
    blocks = Blocks(least=least, most=most, seen=3)
    key = msgspec.structs.replace(key, sequence=None)
    return PlanRegion(region=key, policy="bind", runs=runs, blocks=blocks)


def with_rules(plan: Plan, *rules: PlanRegion) -> Plan:
    return msgspec.structs.replace(plan, memory=(*rules, *plan.memory))


def test_rules_come_last_by_call_site_and_size() -> None:
    small = msgspec.structs.replace(HEAP, bytes=1 << 16)
    other = msgspec.structs.replace(HEAP, thread="0")
    rules = rule(HEAP, 1 << 17, None), rule(small, 0, (1 << 17) - 1), rule(other, 0, None)
    table = encode(with_rules(plan_of((HEAP, "bind")), *rules), {}, locate)
    assert struct.unpack_from("<I", table.data, 40) == (3,)
    assert table.regions[0].region == HEAP
    assert sorted(region.region.thread for region in table.regions[1:]) == ["0", "0.1", "0.1"]
    at = 64 + 2 * 32 + 4 * 64 + 8 * 24
    sizes = [struct.unpack_from("<QQ", table.data, at + 16 * row) for row in range(3)]
    assert sizes == [
        (region.rule.least, 1 << 56 if region.rule.most is None else region.rule.most)
        for region in table.regions[1:]
        if region.rule
    ]
    by_thread = [
        region.rule.least for region in table.regions[1:] if region.region.thread == "0.1" and region.rule
    ]
    assert by_thread == [0, 1 << 17]


def pooled(plan: Plan, *numbers: int) -> Plan:
    """The plan with these threads in a pool on all cpus."""
    threads = (
        msgspec.structs.replace(thread, pool=1, cpus=(0, 1, 2, 3)) if number in numbers else thread
        for number, thread in enumerate(plan.threads)
    )
    return msgspec.structs.replace(plan, threads=tuple(threads))


def test_a_thread_of_a_pool_has_a_node_for_its_stack_where_it_keeps_to_one() -> None:
    plan = pooled(plan_of(threads=3), 2)
    near = [msgspec.structs.replace(plan.threads[1], pool=1, cpus=(2, 3))]
    plan = msgspec.structs.replace(plan, threads=(plan.threads[0], *near, plan.threads[2]))
    table = encode(plan, {}, locate)
    rows = [struct.unpack_from("<QQIIiI", table.data, 64 + 32 * n) for n in range(3)]
    nodes = {row[1]: row[4] for row in rows}
    assert [nodes[name_hash(path)] for path in ("0", "0.1", "0.2")] == [0, 1, -1]


@pytest.mark.parametrize(
    ("plan", "nodes"),
    [
        (plan_of(), ()),
        (plan_of((HEAP, "bind")), ()),
        (plan_of((HEAP, "interleave")), (0, 1)),
        (plan_of((HEAP, "interleave"), (msgspec.structs.replace(HEAP, bytes=2 << 20), "bind")), ()),
        (pooled(plan_of(threads=3), 1, 2), (0, 1)),
        (pooled(plan_of(threads=3), 1), ()),
        (pooled(plan_of((HEAP, "bind"), threads=3), 1, 2), ()),
    ],
)
def test_memory_of_a_process_as_a_whole(plan: Plan, nodes: tuple[int, ...]) -> None:
    assert memory_nodes(plan, "p0", Machine.load("2x2")) == nodes
    table = encode(plan, {}, locate, {"p0": nodes})
    threads, cpus = struct.unpack_from("<I", table.data, 12)[0], struct.unpack_from("<I", table.data, 16)[0]
    rows = [struct.unpack_from("<QQIIiI", table.data, 64 + 32 * n) for n in range(threads)]
    (at,) = [row[5] for row in rows if row[1] == name_hash("0")]
    last = struct.unpack_from(f"<{cpus}I", table.data, len(table.data) - 4 * cpus)
    assert at == 0 if not nodes else last[at - 1 : at + len(nodes)] == (len(nodes), *nodes)


def table_row(regions: tuple[PlanRegion, ...], key: RegionKey) -> int:
    return [region.region for region in regions].index(key)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (STACK, "with their thread"),
        (msgspec.structs.replace(STATIC, name="app:gone"), "not found"),
        (msgspec.structs.replace(STATIC, build_id="00" * 10), "is not the plan's"),
        (msgspec.structs.replace(HEAP, name="app"), "call site"),
        (msgspec.structs.replace(HEAP, name="app+0xzz"), "call site"),
        (msgspec.structs.replace(HEAP, name="app+0x" + "1" * 17), "call site"),
        (msgspec.structs.replace(HEAP, kind="small"), "identified"),
        (msgspec.structs.replace(HEAP, sequence=-1), "no thread has such a block"),
        (msgspec.structs.replace(HEAP, sequence=1 << 32), "no thread has such a block"),
        (msgspec.structs.replace(HEAP, bytes=(1 << 56) + 1), "no memory is so large"),
    ],
)
def test_regions_without_a_row_say_why(key: RegionKey, why: str) -> None:
    table = encode(plan_of((key, "bind")), {}, locate)
    assert table.regions == ()
    assert why in table.skipped[0][1]


def test_a_region_that_stands_twice_has_one_row() -> None:
    assert len(encode(plan_of((HEAP, "bind"), (HEAP, "bind")), {}, locate).regions) == 1


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
    assert applied.summary.startswith("1/4 threads")


def test_a_program_that_never_loaded_the_library() -> None:
    plan = plan_of()
    applied = report(plan, LoggedRun())
    assert not applied.ok and "did not load the library" in applied.reasons[0]
    assert applied.summary == "0/2 threads as planned"
