"""Readers of machines: kernel lists and masks, sysfs trees, hwloc XML, the papers' machines."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.machine.builtin import BUILT_IN
from numaplan.machine.cpusets import format_list, parse_list, parse_mask
from tests.support.machines import Tree, hwloc_machine, sysfs_machine

CPU_SETS = st.sets(st.integers(0, 300), max_size=40)


@given(CPU_SETS)
def test_lists_read_back(cpus: set[int]) -> None:
    assert parse_list(",".join(map(str, sorted(cpus))) + "\n", "x") == tuple(sorted(cpus))
    assert parse_list(format_list(cpus), "x") == tuple(sorted(cpus))


@given(CPU_SETS)
def test_masks_read_back(cpus: set[int]) -> None:
    value = sum(1 << cpu for cpu in cpus)
    words = []
    while value or not words:
        words.insert(0, f"0x{value & 0xFFFFFFFF:08x}" if value & 0xFFFFFFFF or not words else "")
        value >>= 32
    assert parse_mask(",".join(words), "x") == tuple(sorted(cpus))


def test_forms_of_lists_and_masks() -> None:
    assert parse_list("0-3,16-19\n\0", "x") == (0, 1, 2, 3, 16, 17, 18, 19)
    assert parse_list("0-10:2/4", "x") == (0, 1, 4, 5, 8, 9)
    assert parse_list("\n", "x") == ()
    assert format_list([8, 3, 2, 1, 10, 0]) == "0-3,8,10"
    assert parse_mask("00000001,00000003", "x") == (0, 1, 32)
    assert parse_mask("0xf...f,0x00000001", "x")[:3] == (0, 32, 33)


@pytest.mark.parametrize("text", ["a", "3-1", "0-99999999", "1,,2-", "0-5:0/2", "1234567890"])
def test_bad_lists(text: str) -> None:
    with pytest.raises(UsageError, match="somewhere"):
        parse_list(text, "somewhere")


@pytest.mark.parametrize("text", ["0xg", "1ffffffff", "-1", "1," * 5000])
def test_bad_masks(text: str) -> None:
    with pytest.raises(UsageError, match="somewhere"):
        parse_mask(text, "somewhere")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Two nodes of two cores with two hwthreads (cpu 7 offline), a memory-only node 8, a cpuset."""
    tree = Tree(tmp_path / "box")
    tree.put("sys/devices/system/cpu/online", "0-6\n\0")
    for cpu in range(8):
        core = cpu % 4
        tree.cpu(cpu, f"{core},{core + 4}", "0-1,4-5" if core < 2 else "2-3,6-7")
    tree.node(0, "0-1,4-5", 1000, "10 21 17")
    tree.node(2, "2-3,6-7", 2000, "21 10 28")
    tree.node(8, "\n", 500, "17 28 10")
    tree.put("proc/self/cpuset", "/job\n")
    tree.put("sys/fs/cgroup/cpuset/job/cpuset.cpus", "1,5")
    tree.put("sys/fs/cgroup/cpuset/job/cpuset.mems", "2\n")
    return tree


def test_a_recorded_tree(tree: Tree) -> None:
    machine = sysfs_machine(tree.root)
    assert machine.name == "box"
    assert Machine.load(str(tree.root)) == machine
    assert [(n.id, n.cpus, n.memory_bytes) for n in machine.nodes] == [
        (0, (0, 1, 4, 5), 1024000),
        (2, (2, 3, 6), 2048000),
        (8, (), 512000),
    ]
    assert machine.distances == ((10, 21, 17), (21, 10, 28), (17, 28, 10))
    assert [(core.cpus, core.node, core.l3) for core in machine.cores] == [
        ((0, 4), 0, 0),
        ((1, 5), 0, 0),
        ((2, 6), 2, 1),
        ((3,), 2, 1),
    ]


def test_the_cpuset_of_a_recorded_tree(tree: Tree) -> None:
    machine = sysfs_machine(tree.root, restrict=True)
    # Node 0 keeps its cpu but not its memory, node 2 only its memory, node 8 nothing.
    assert [(n.id, n.cpus, n.memory_bytes) for n in machine.nodes] == [(0, (1, 5), 0), (2, (), 2048000)]
    assert machine.distances == ((10, 21), (21, 10))
    assert [core.cpus for core in machine.cores] == [(1, 5)]


def test_a_tree_without_nodes(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for cpu in (0, 1, 3):
        tree.put(f"sys/devices/system/cpu/cpu{cpu}/online", "0\n" if cpu == 1 else "1\n")
    tree.put("proc/meminfo", "MemTotal:       4096 kB\n")
    machine = sysfs_machine(tmp_path)
    assert [(n.id, n.cpus, n.memory_bytes) for n in machine.nodes] == [(0, (0, 3), 4096 * 1024)]
    assert machine.distances == () and machine.cores == ()


def test_masks_of_old_kernels(tree: Tree) -> None:
    for node, mask in ((0, "00000000,00000033"), (2, "00000000,000000cc"), (8, "0")):
        (tree.root / f"sys/devices/system/node/node{node}/cpulist").unlink()
        tree.put(f"sys/devices/system/node/node{node}/cpumap", mask)
    assert [node.cpus for node in sysfs_machine(tree.root).nodes] == [(0, 1, 4, 5), (2, 3, 6), ()]


def test_incomplete_distances_are_left_out(tree: Tree) -> None:
    tree.put("sys/devices/system/node/node2/distance", "21 10")
    assert sysfs_machine(tree.root).distances == ()


def test_no_tree_at_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no cpus"):
        sysfs_machine(tmp_path)


def test_this_machine_is_what_we_may_use() -> None:
    import os

    machine = Machine.load("local")
    assert set(machine.cpus) <= os.sched_getaffinity(0)
    assert machine.name == "local"
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {max(allowed)})
        assert Machine.load("local").cpus == (max(allowed),)
    finally:
        os.sched_setaffinity(0, allowed)


def xml(body: str, version: str = ' version="2.0"', top: str = "") -> bytes:
    sets = 'cpuset="0x0000000f" allowed_cpuset="0x00000007" allowed_nodeset="0x00000207"'
    start = f'<?xml version="1.0"?><topology{version}><object type="Machine" os_index="0" {top or sets}>'
    return (start + body).encode()


CORES = "".join(
    f'<object type="L3Cache" cpuset="0x{3 << 2 * c:x}"><object type="Core" cpuset="0x{3 << 2 * c:x}">'
    + "".join(f'<object type="PU" os_index="{2 * c + t}" cpuset="0x{1 << 2 * c + t:x}"/>' for t in (0, 1))
    + "</object></object>"
    for c in (0, 1)
)
NODES = (
    '<object type="NUMANode" os_index="0" cpuset="0x3" local_memory="100" gp_index="70"/>'
    '<object type="NUMANode" os_index="1" cpuset="0xc" local_memory="200" gp_index="71"/>'
    '<object type="NUMANode" os_index="9" subtype="MCDRAM" cpuset="0x3" local_memory="50" gp_index="72"/>'
)


def distances(indexing: str, indexes: str) -> str:
    return (
        f'<distances2 type="NUMANode" nbobjs="3" kind="5" name="NUMALatency" indexing="{indexing}">'
        f'<indexes length="9">{indexes} </indexes><u64values>10 22 33 22 </u64values>'
        "<u64values>10 44 33 44 10 </u64values></distances2>"
    )


@pytest.mark.parametrize(("indexing", "indexes"), [("os", "0 9 1"), ("gp", "70 72 71")])
def test_hwloc_2(indexing: str, indexes: str) -> None:
    data = xml(CORES + NODES + "</object>" + distances(indexing, indexes) + "</topology>")
    machine = hwloc_machine(data, "folder/box.xml")
    assert machine.name == "box.xml"
    # cpu 3 is not allowed; node 9 is near to cpus that belong to main memory's node 0.
    assert [(n.id, n.cpus, n.memory_bytes) for n in machine.nodes] == [
        (0, (0, 1), 100),
        (1, (2,), 200),
        (9, (), 50),
    ]
    assert machine.distances == ((10, 33, 22), (33, 10, 44), (22, 44, 10))
    assert [(core.cpus, core.node, core.l3) for core in machine.cores] == [((0, 1), 0, 0), ((2,), 1, 1)]


def test_hwloc_1() -> None:
    nodes = "".join(
        f'<object type="NUMANode" os_index="{4 * n}" cpuset="0x{3 << 2 * n:x}" local_memory="7">'
        f'<object type="Cache" depth="2" cache_type="0"><object type="Core" cpuset="0x{3 << 2 * n:x}">'
        f'<object type="PU" os_index="{2 * n}"/><object type="PU" os_index="{2 * n + 1}"/>'
        "</object></object></object>"
        for n in (0, 1)
    )
    latencies = "".join(f'<latency value="{value}"/>' for value in (1.0, 2.1, 1.6, 1.0))
    matrix = f'<distances nbobjs="2" relative_depth="1" latency_base="10.0">{latencies}</distances>'
    top = 'cpuset="0xf" online_cpuset="0xd" allowed_cpuset="0xf"'
    machine = hwloc_machine(xml(matrix + nodes + "</object></topology>", version="", top=top), "x")
    assert [(n.id, n.cpus) for n in machine.nodes] == [(0, (0,)), (4, (2, 3))]
    assert machine.distances == ((10, 21), (16, 10))
    assert len({core.l3 for core in machine.cores}) == 2


def test_hwloc_1_without_nodes() -> None:
    data = xml(CORES + "</object></topology>", version="", top='cpuset="0xf" local_memory="4096"')
    machine = hwloc_machine(data, "x")
    assert [(n.id, n.cpus, n.memory_bytes) for n in machine.nodes] == [(0, (0, 1, 2, 3), 4096)]


WHOLE = xml(CORES + NODES + "</object>" + distances("os", "0 9 1") + "</topology>")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html></html>",
        b"<topology/>",
        WHOLE[:-20],
        WHOLE.replace(b'os_index="9"', b'os_index="-9"'),
        WHOLE.replace(b'os_index="9"', b'os_index="1"'),
        WHOLE.replace(b'cpuset="0x0000000f"', b'cpuset="0xzz"'),
        WHOLE.replace(b'cpuset="0x0000000f"', b'cpuset="0x0"'),
        WHOLE.replace(b'local_memory="50"', b'local_memory="99999999999999999999"'),
        WHOLE.replace(b"10 22 33 22", b"10 22 33"),
        WHOLE.replace(b"10 22 33 22", b"10 nan 33 22"),
        WHOLE.replace(b"<topology", b'<!DOCTYPE t [<!ENTITY a "b">]><topology'),
        WHOLE.replace(b'<?xml version="1.0"?>', b'<?xml version="1.0" encoding="klingon"?>'),
    ],
)
def test_malformed_xml_is_an_error(data: bytes) -> None:
    with pytest.raises(UsageError):
        hwloc_machine(data, "x.xml")


@given(st.data())
def test_mutated_xml_is_a_machine_or_an_error(data: st.DataObject) -> None:
    content = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    with suppress(UsageError):
        assert hwloc_machine(bytes(content), "x.xml").cpus


def test_deep_nesting_does_no_harm() -> None:
    deep = b'<object type="Group">' * 50000
    with pytest.raises(UsageError):
        hwloc_machine(b"<topology>" + deep + b"</object>" * 50000 + b"</topology>", "x")


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in_machines(name: str) -> None:
    machine = Machine.load(name)
    nodes, cpus = (int(part) for part in name.rsplit("-", 1)[1].split("x"))
    assert machine.name == name
    assert [len(node.cpus) for node in machine.nodes] == [cpus] * nodes
    assert machine.distance_matrix.shape == (nodes, nodes)
    assert (machine.distance_matrix.diagonal() == 10).all()
    assert len(machine.cores) == nodes * cpus


def test_more_nodes_than_linux_knows_are_refused() -> None:
    nodes = [{"id": number, "cpus": [number]} for number in range(1025)]
    with pytest.raises(UsageError, match="1025 nodes"):
        Machine.from_dict({"schema": "numaplan/machine/1", "nodes": nodes})
    with pytest.raises(UsageError, match="more than 1024 nodes"):
        Machine.load("9999x1")


def test_measured_matrices_of_the_papers() -> None:
    hpl, lpl = Machine.load("hpl-4x10"), Machine.load("lpl-4x20")
    assert hpl.latency_ns[2] == (271.4, 252.7, 86.0, 254.7)
    assert hpl.bandwidth_mb_s[3] == (12371, 11992, 12704, 59487)
    assert lpl.latency_ns[1] == (143.3, 82.9, 142.1, 140.4)
    assert lpl.bandwidth_mb_s[0] == (76251, 17148, 17141, 17127)
    # Two hops cost more than one: the distances must order the nodes as the latencies do.
    assert hpl.distances[0][2] > hpl.distances[0][1] == hpl.distances[0][3]
