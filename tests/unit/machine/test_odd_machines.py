"""Machines that kernels and files describe in odd ways, and how errors name what was read."""

from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.machine.sysfs import read_sysfs
from tests.support.machines import Tree, hwloc_machine, sysfs_machine


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Four cpus, no nodes yet."""
    tree = Tree(tmp_path / "box")
    tree.put("sys/devices/system/cpu/online", "0-3\n")
    return tree


def xml(*lists: str) -> bytes:
    """Four cpus and a node for each mask of cpus."""
    parts = [f'<object type="PU" os_index="{cpu}"/>' for cpu in range(4)] + [
        f'<object type="NUMANode" os_index="{node}" cpuset="{cpus}" local_memory="{(node + 1) << 20}"/>'
        for node, cpus in enumerate(lists)
    ]
    top = '<object type="Machine" os_index="0" cpuset="0xf">'
    return f'<topology version="2.0">{top}{"".join(parts)}</object></topology>'.encode()


def test_a_cpu_in_several_nodes_lists_is_the_narrowest_s(tree: Tree) -> None:
    """As `numa=fake=` and old firmware have it."""
    for node, cpus in enumerate(("0-3", "0-3", "2-3")):
        tree.node(node, cpus, (node + 1) << 10, "10 20 20")
    for machine in (sysfs_machine(tree.root), hwloc_machine(xml("0xf", "0xf", "0xc"), "box.xml")):
        assert [node.cpus for node in machine.nodes] == [(0, 1), (), (2, 3)]
        assert [node.memory_bytes for node in machine.nodes] == [1 << 20, 2 << 20, 3 << 20]


def test_errors_name_what_was_read(tree: Tree, tmp_path: Path) -> None:
    tree.node(0, "0-3", 1, "9999999999999")
    with pytest.raises(UsageError, match=f"^{tree.root}: 'distances' has an entry .* machine.json instead"):
        read_sysfs(tree.root)
    twice = xml("0x3", "0xc").replace(b'os_index="1" cpuset', b'os_index="0" cpuset')
    with pytest.raises(UsageError, match=r"^box\.xml: nodes must have distinct ids .*lstopo"):
        hwloc_machine(twice, "box.xml")
    file = tmp_path / "m.json"
    file.write_text('{"nodes": [{"id": 0, "cpus": [1]}, {"id": 1, "cpus": [1]}]}')
    with pytest.raises(UsageError, match=f"^{file}: a cpu is listed twice .* correct 'nodes'$"):
        Machine.load(str(file))


def test_cpus_in_no_node_are_named(tree: Tree) -> None:
    """Their node may be offline, or not in the file."""
    tree.node(1, "1", 1, "10")
    for machine in (sysfs_machine(tree.root), hwloc_machine(xml("0x2"), "box.xml")):
        assert (machine.cpus, machine.nodeless_cpus) == ((1,), (0, 2, 3))
        assert machine.notes == ("3 cpus (0,2-3) left out: in no node here",)
        assert Machine.from_json(machine.to_json()).nodeless_cpus == (0, 2, 3)
    assert not Machine.load("2x2").notes and b"nodeless" not in Machine.load("2x2").to_json()


def test_of_matrices_without_a_name_the_one_from_10_is_the_kernel_s() -> None:
    """A user can give hwloc others; before version 2.1 it wrote no names."""
    nodes = xml("0x3", "0xc").removesuffix(b"</object></topology>")
    user, kernel = "1 4 4 1", "10 20 20 10"

    def version_2(values: str, facts: str = "") -> bytes:
        ids = '<indexes length="3">0 1</indexes>'
        start = f'<distances2 type="NUMANode" nbobjs="2" kind="5" indexing="os" {facts}>{ids}'
        return f"{start}<u64values>{values}</u64values></distances2>".encode()

    def version_1(values: str) -> bytes:
        latencies = "".join(f'<latency value="{value}"/>' for value in values.split())
        return f'<distances nbobjs="2" latency_base="1">{latencies}</distances>'.encode()

    both = nodes + version_1(user) + version_1(kernel) + b"</object></topology>"
    assert hwloc_machine(both, "m").distances == ((10, 20), (20, 10))
    two, end = nodes + b"</object>", b"</topology>"
    both = two + version_2(user) + version_2(kernel) + end
    assert hwloc_machine(both, "m").distances == ((10, 20), (20, 10))
    named = two + version_2(kernel) + version_2(user, 'name="NUMALatency"') + end
    assert hwloc_machine(named, "m").distances == ((1, 4), (4, 1))
