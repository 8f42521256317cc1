"""Caches: read from sysfs and hwloc, described in a machine.json, and fitted to what can be modelled."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError
from numaplan.machine import Machine, machine_shapes
from numaplan.machine.cache_model import LINE, MAX_WAYS, SETS, domains_of, modelled_shape
from numaplan.mapper.plan_file.parts import PlanMachine
from numaplan.profiler.backends.emulation.options import read_emulate_options
from tests.support.machines import hwloc_machine, sysfs_machine


def put(root: Path, cpu: int, index: int, **facts: str) -> None:
    folder = root / f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in facts.items():
        (folder / name).write_text(text + "\n")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Four cpus on one node; two share each L3, and cpu 3 is offline."""
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/online").write_text("0-2\n")
    for cpu in range(3):
        pair = "0-1" if cpu < 2 else "2-3"
        one = {"shared_cpu_list": str(cpu)}
        put(tmp_path, cpu, 0, level="1", type="Data", size="48K", ways_of_associativity="12", **one)
        put(tmp_path, cpu, 1, level="1", type="Instruction", size="32K", ways_of_associativity="8", **one)
        put(tmp_path, cpu, 2, level="2", type="Unified", size="2048K", ways_of_associativity="16", **one)
        put(tmp_path, cpu, 3, level="3", type="Unified", size="36M", shared_cpu_list=pair)
    return tmp_path


def test_caches_of_a_sysfs_tree(tree: Path) -> None:
    machine = sysfs_machine(tree)
    assert [(c.level, c.bytes, c.ways, c.inclusive, c.cpus) for c in machine.caches] == [
        (1, 48 << 10, 12, None, ((0,), (1,), (2,))),
        (2, 2 << 20, 16, None, ((0,), (1,), (2,))),
        (3, 36 << 20, 0, None, ((0, 1), (2,))),
    ]
    assert Machine.from_json(machine.to_json()) == machine
    assert domains_of(machine, [(0, 0), (1, 0), (2, 0)]) == [0, 0, 1]


@pytest.mark.parametrize(
    "facts", [{"size": "many"}, {"size": "0K"}, {"level": "L3"}, {"level": "0"}, {"size": "9999999999G"}]
)
def test_a_cache_that_sysfs_describes_wrongly_is_left_out(tree: Path, facts: dict[str, str]) -> None:
    for cpu in range(3):
        put(tree, cpu, 3, **facts)
    assert {cache.level for cache in sysfs_machine(tree).caches} == {1, 2}


def test_a_cache_that_overlaps_another_of_its_level_is_left_out(tree: Path) -> None:
    put(tree, 0, 3, shared_cpu_list="0")
    put(tree, 1, 3, shared_cpu_list="1-2")
    put(tree, 2, 3, shared_cpu_list="0-2")
    assert [c.cpus for c in sysfs_machine(tree).caches if c.level == 3] == [((0,), (1, 2))]
    put(tree, 1, 3, shared_cpu_list="0-1")
    assert [c.cpus for c in sysfs_machine(tree).caches if c.level == 3] == [((0,),)]

    cpus = "".join(f'<object type="PU" os_index="{cpu}"/>' for cpu in range(3))
    caches = "".join(
        f'<object type="L3Cache" cpuset="{cpus}" depth="3" cache_size="{size}"/>'
        for cpus, size in (("0x3", 1 << 20), ("0x6", 2 << 20), ("0x4", 1 << 20))
    )
    top = f'<object type="Machine" os_index="0" cpuset="0x7">{cpus}{caches}</object>'
    machine = hwloc_machine(f'<topology version="2.0">{top}</topology>'.encode(), "m.xml")
    assert [(c.bytes, c.cpus) for c in machine.caches] == [(1 << 20, ((0, 1), (2,)))]


def test_caches_of_an_hwloc_file() -> None:
    def cache(kind: str, depth: int, cpuset: str, inside: str, inclusive: int) -> str:
        facts = f'depth="{depth}" cache_size="1048576" cache_associativity="{-1 if depth == 1 else 16}"'
        info = f'<info name="Inclusive" value="{inclusive}"/>'
        return f'<object type="{kind}" cpuset="{cpuset}" {facts} cache_type="0">{info}{inside}</object>'

    cores = "".join(
        cache(
            "L2Cache",
            2,
            f"0x{1 << cpu:x}",
            f'<object type="PU" os_index="{cpu}" cpuset="0x{1 << cpu:x}"/>',
            0,
        )
        for cpu in (0, 1)
    )
    top = '<object type="Machine" os_index="0" cpuset="0x3">'
    text = f'<topology version="2.0">{top}{cache("L3Cache", 3, "0x3", cores, 1)}</object></topology>'
    machine = hwloc_machine(text.encode(), "m.xml")
    assert [(c.level, c.ways, c.inclusive, c.cpus) for c in machine.caches] == [
        (2, 16, False, ((0,), (1,))),
        (3, 16, True, ((0, 1),)),
    ]


@pytest.mark.parametrize(
    "cache",
    [
        {"level": 0, "bytes": 1024},
        {"level": 1, "bytes": 0},
        {"level": 1, "bytes": 1 << 60},
        {"level": 1, "bytes": 1024, "ways": -1},
        {"level": 1, "bytes": 1024, "cpus": [[0], [0]]},
        {"level": 1, "bytes": 1024, "cpus": [[7]]},
    ],
)
def test_a_cache_that_cannot_be_is_refused(cache: dict[str, object]) -> None:
    content = {"nodes": [{"id": 0, "cpus": [0, 1]}], "caches": [cache]}
    with pytest.raises(UsageError) as error:
        Machine.from_dict(content)
    assert "cache" in str(error.value) and error.value.hint


@given(st.sampled_from(sorted(SETS)), st.integers(1, 1 << 40), st.integers(0, 1 << 20))
def test_every_size_has_a_cache_that_can_be_modelled(name: str, size: int, ways: int) -> None:
    sets, near = modelled_shape(name, size, ways)
    low, high = SETS[name]
    assert low <= sets <= high and not sets & (sets - 1) and 1 <= near <= MAX_WAYS
    if low * LINE * MAX_WAYS <= size <= high * LINE * MAX_WAYS:
        # Sizes lie as far apart as 8 and 9 ways of as many sets: half of that off at most.
        assert abs(sets * near * LINE / size - 1) <= 1 / 17 + 1e-9


@pytest.mark.parametrize(
    ("size", "ways", "shape"),
    [
        (32 << 20, 16, (32768, 16)),
        (1 << 20, 16, (1024, 16)),
        (256 << 10, 4, (1024, 4)),
        (39424 << 10, 11, (65536, 10)),
    ],
)
def test_a_cache_that_can_be_modelled_is(size: int, ways: int, shape: tuple[int, int]) -> None:
    sets, near = modelled_shape("l3", size, ways)
    assert abs(sets * near * LINE - size) <= abs(shape[0] * shape[1] * LINE - size)
    if size & (size - 1) == 0:
        assert (sets, near) == shape


def test_options_take_the_machine_s_caches_and_what_is_given_first(tree: Path) -> None:
    machine = sysfs_machine(tree)
    assert set(machine_shapes(machine)) == {"l1", "l2", "l3"}
    options = read_emulate_options({"l2": "1M:8"}, machine=machine)
    assert {"l1=64:12", "l2=2048:8", "l3_inclusive=yes"} <= set(options.plugin)
    l3 = machine.caches[-1]
    victim = Machine(nodes=machine.nodes, caches=(type(l3)(level=3, bytes=l3.bytes, inclusive=False),))
    assert "l3_inclusive=no" in read_emulate_options({}, machine=victim).plugin
    assert "l3_inclusive=yes" in read_emulate_options({"l3_inclusive": "yes"}, machine=victim).plugin


def test_an_l3_that_spans_nodes_counts_as_one_a_node() -> None:
    content = {
        "nodes": [{"id": 0, "cpus": [0, 1]}, {"id": 1, "cpus": [2, 3]}],
        "caches": [{"level": 3, "bytes": 1 << 20, "cpus": [[0, 1, 2, 3]]}],
    }
    assert domains_of(Machine.from_dict(content), [(0, 0), (1, 0), (2, 1), (3, 1)]) == [0, 0, 1, 1]
    assert domains_of(Machine.load("2x2"), [(0, 0), (1, 0), (2, 1), (3, 1)]) == [0, 0, 1, 1]


def test_where_no_cache_is_of_level_3_the_last_ones_count() -> None:
    content = {
        "nodes": [{"id": 0, "cpus": [0, 1, 2, 3]}],
        "cores": [{"node": 0, "cpus": [cpu], "l3": cpu // 2} for cpu in range(4)],
        "caches": [{"level": 2, "bytes": 4 << 20, "cpus": [[0, 1], [2, 3]]}],
    }
    machine = Machine.from_dict(content)
    assert domains_of(machine, [(cpu, 0) for cpu in range(4)]) == [0, 0, 1, 1]
    kept = PlanMachine.of(machine).machine()  # as a plan has it
    assert domains_of(kept, [(cpu, 0) for cpu in range(4)]) == [0, 0, 1, 1]
