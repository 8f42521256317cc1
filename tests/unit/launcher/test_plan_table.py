"""The plan table: rows as enforce.so reads them."""

import struct

import msgspec
import pytest
from msgspec import UNSET

from numaplan.launcher.enforce.plan_table import PlanTable, encode, make_plan_table, name_hash
from numaplan.launcher.enforce.process_memory import memory_nodes
from numaplan.machine import Machine
from numaplan.mapper import (
    Plan,
    PlanRegion,
    RegionKey,
    Scales,
)
from tests.support.outside import plan_of_programs, plan_of_threads
from tests.support.small_plans import HEAP, STACK, STATIC, locate, plan_of, rule, with_rules


def test_name_hash_is_fnv() -> None:
    assert name_hash("") == 0xCBF29CE484222325
    assert name_hash("a") == 0xAF63DC4C8601EC8C
    assert name_hash("foobar") == 0x85944171F73967E8


def test_rows_and_their_order() -> None:
    plan = plan_of((HEAP, "bind"), (STATIC, "interleave"), threads=3)
    table = encode(plan, {"": (0, 1, 2, 3), "p0": (0, 1)}, locate)
    magic, version, threads, cpus, regions, runs, nodes, size = struct.unpack_from("<8s6IQ", table.data)
    assert (magic, version, threads, cpus, regions, runs, nodes) == (b"NUMAPLPF", 5, 5, 9, 2, 4, 2)
    assert size == len(table.data) == 64 + 5 * 40 + 2 * 64 + 4 * 24 + 9 * 4
    rows = [struct.unpack_from("<QQIIiI8x", table.data, 64 + 40 * n) for n in range(threads)]
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    assert {row[:2] for row in rows} == {
        (0, 0),
        (name_hash("p0"), 0),
        *((name_hash("p0"), name_hash(path)) for path in ("0", "0.1", "0.2")),
    }
    heap = struct.unpack_from("<QQQQQQIIIHH", table.data, 64 + 5 * 40 + 64 * table_row(table.regions, HEAP))
    assert heap[1:5] == (name_hash("0.1"), name_hash("app"), 0x12AB, 1 << 20)
    assert heap[8:] == (3, 1, 1)
    static = struct.unpack_from(
        "<QQQQQQIIIHH", table.data, 64 + 5 * 40 + 64 * table_row(table.regions, STATIC)
    )
    assert static[1:4] == (0, name_hash("app"), 0x4000)
    assert static[5] == int.from_bytes(bytes.fromhex("aabbccddeeff0011"), "little")
    assert static[9:] == (4, 3)


@pytest.mark.parametrize(
    ("loads", "pool", "unplanned", "cpus"),
    [
        ((100, 100, 1), 4, "float", 2),
        ((100, 100, 1), UNSET, "float", 4),
        ((100, 100, 90), 4, "float", 4),
        ((0, 0, 0), 4, "float", 4),
        ((100, 100, 1), 4, "anywhere", 4),
    ],
)
def test_threads_that_it_does_not_name_are_where_those_work_that_it_does(
    loads: tuple[float, ...], pool: int, unplanned: str, cpus: int
) -> None:
    """The third thread is on the second node, and idles there if it is of a pool."""
    plan = plan_of(threads=3)
    threads = [
        msgspec.structs.replace(thread, node=number // 2, cpus=(number,), load=load)
        for number, (thread, load) in enumerate(zip(plan.threads, loads, strict=True))
    ]
    threads[2] = msgspec.structs.replace(threads[2], pool=pool)
    plan = msgspec.structs.replace(plan, threads=tuple(threads))
    rows = rows_of(make_plan_table(plan, Machine.load("2x2"), "app", unplanned, {}))
    assert {row[:2]: row[3] for row in rows}[name_hash("p0"), 0] == cpus
    works = unplanned == "float" and pool is not UNSET and loads[2] != 1
    assert [row[6] > 0 for row in rows if row[1] == name_hash("0.2")] == [works]


def rows_of(table: PlanTable) -> list[tuple[int, ...]]:
    """process, path, first cpu, cpus, node, memory, pool of each thread, and of others."""
    count = struct.unpack_from("<I", table.data, 12)[0]
    return [struct.unpack_from("<QQIIiII4x", table.data, 64 + 40 * row) for row in range(count)]


def test_what_threads_of_a_pool_make_has_the_cpus_of_all_of_it() -> None:
    """Also where each of its threads keeps to a node."""
    plan = plan_of(threads=4)
    on = {"0": (0,), "0.1": (0, 1), "0.2": (2, 3), "0.3": (2,)}
    threads = tuple(
        msgspec.structs.replace(thread, cpus=on[thread.path], pool=1 if len(on[thread.path]) > 1 else UNSET)
        for thread in plan.threads
    )
    table = make_plan_table(
        msgspec.structs.replace(plan, threads=threads), Machine.load("2x2"), "app", "float", {}
    )
    rows = rows_of(table)
    given = {row[1]: rows[row[6] - 1] if row[6] else None for row in rows}
    assert given[name_hash("0")] is given[name_hash("0.3")] is None
    pool = given[name_hash("0.1")]
    assert pool == given[name_hash("0.2")] and pool is not None and pool[1] == name_hash("pool 1")
    cpus = struct.unpack_from(f"<{pool[3]}I", table.data, 64 + 40 * len(rows) + 4 * pool[2])
    assert cpus == (0, 1, 2, 3)


def test_who_made_a_pool_last_makes_more_of_it() -> None:
    """A thread of another pool's that made it makes more of its own."""
    paths = {"0": UNSET, "0.1": UNSET, "0.9": 1, "0.10": 1, "0.10.1": 2, "0.1.2": 2, "0.1.11": UNSET}
    plan = plan_of_threads([("p0", path) for path in paths], machine=Machine.load("2x2"))
    threads = tuple(msgspec.structs.replace(one, pool=paths[one.path]) for one in plan.threads)
    plan = msgspec.structs.replace(plan, threads=threads)
    rows = rows_of(make_plan_table(plan, Machine.load("2x2"), "app", "float", {}))
    given = {row[1]: rows[row[6] - 1][1] if row[6] else None for row in rows}
    one, other = name_hash("pool 1"), name_hash("pool 2")
    gives = {"0": one, "0.9": one, "0.10": one, "0.10.1": other, "0.1.2": other}
    assert {path: pool for path in paths if (pool := given[name_hash(path)])} == gives


def test_child_processes_tell_which_row_has_their_parent() -> None:
    """Of those whose programs are known, which p0's is not."""
    table = encode(plan_of_programs(p0_1="sh", p0_2_1="cat", p0_1_2="gzip"), {}, locate)
    count = struct.unpack_from("<I", table.data, 48)[0]
    rows = [struct.unpack_from("<QQQII", table.data, len(table.data) - 4 * 4 - 32 * n) for n in (3, 2, 1)]
    assert count == 3 and rows == [
        (name_hash("p0.1"), name_hash("p0"), name_hash("sh"), 1, 0),
        (name_hash("p0.1.2"), name_hash("p0.1"), name_hash("gzip"), 2, 1),
        (name_hash("p0.2.1"), name_hash("p0.2"), name_hash("cat"), 1, 0),
    ]


def test_regions_that_scale_say_so_in_their_row() -> None:
    plan = plan_of((HEAP, "bind"))
    scaled = msgspec.structs.replace(plan.memory[0], scales=Scales(known="shares"))
    rows = []
    for memory in (plan.memory, (scaled,)):
        found = encode(msgspec.structs.replace(plan, memory=memory), {}, locate)
        header, threads = 64, 40 * len(plan.threads)
        rows.append(struct.unpack_from("<QQQQQQIIIHBB", found.data, header + threads))
    assert [row[-1] for row in rows] == [0, 1] and rows[0][:-1] == rows[1][:-1]


def test_rules_come_last_by_call_site_and_size() -> None:
    small = msgspec.structs.replace(HEAP, bytes=1 << 16)
    other = msgspec.structs.replace(HEAP, thread="0")
    rules = rule(HEAP, 1 << 17, None), rule(small, 0, (1 << 17) - 1), rule(other, 0, None)
    table = encode(with_rules(plan_of((HEAP, "bind")), *rules), {}, locate)
    assert struct.unpack_from("<I", table.data, 40) == (3,)
    assert table.regions[0].region == HEAP
    assert sorted(region.region.thread for region in table.regions[1:]) == ["0", "0.1", "0.1"]
    at = 64 + 2 * 40 + 4 * 64 + 8 * 24
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
    rows = [struct.unpack_from("<QQIIiI8x", table.data, 64 + 40 * n) for n in range(3)]
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
        (pooled(plan_of(threads=1), 0), ()),  # its only thread touches what it uses first
        (pooled(plan_of((HEAP, "bind"), threads=3), 1, 2), ()),
    ],
)
def test_memory_of_a_process_as_a_whole(plan: Plan, nodes: tuple[int, ...]) -> None:
    assert memory_nodes(plan, "p0", Machine.load("2x2")) == nodes
    table = encode(plan, {}, locate, {"p0": nodes})
    threads, cpus = struct.unpack_from("<I", table.data, 12)[0], struct.unpack_from("<I", table.data, 16)[0]
    rows = [struct.unpack_from("<QQIIiI8x", table.data, 64 + 40 * n) for n in range(threads)]
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


def test_threads_tell_whose_seat_through_time_theirs_is() -> None:
    """For what their creator makes beyond the plan: unless that has the cpus of a pool."""
    lanes = {"0": UNSET, "0.1": 2, "0.2": UNSET, "0.10": 2, "0.1.1": 2, "0.1.2": UNSET, "0.2.1": UNSET}
    plan = plan_of_threads([("p0", path) for path in lanes], machine=Machine.load("2x2"))
    threads = tuple(
        msgspec.structs.replace(one, lane=lanes[one.path], pool=1 if one.path == "0.2.1" else UNSET)
        for one in plan.threads
    )
    plan = msgspec.structs.replace(plan, threads=threads)
    for unplanned, expected in (
        ("float", {"0.1": "0.1", "0.10": "0.1", "0.2": "0.2", "0.1.1": "0.1.1", "0.1.2": "0.1.2"}),
        ("inherit", {}),
        ("anywhere", {}),
    ):
        data = make_plan_table(plan, Machine.load("2x2"), "app", unplanned, {}).data
        count = struct.unpack_from("<I", data, 12)[0]
        rows = [struct.unpack_from("<QQ", data, 64 + 40 * row) for row in range(count)]
        first = [struct.unpack_from("<I", data, 64 + 40 * row + 36)[0] for row in range(count)]
        named = {name_hash(path): path for path in lanes}
        found = {named[path]: named[rows[at - 1][1]] for (_, path), at in zip(rows, first, strict=True) if at}
        assert found == expected
