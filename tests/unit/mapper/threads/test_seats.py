"""Levels between a node and its cores, and the seats of threads along them."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.machine.levels import with_groups
from numaplan.machine.topology import MAX_LEVELS, Core
from numaplan.mapper import assign_cpus
from tests.support.machines import hwloc_machine, sysfs_machine


def cores(count: int, wide: int = 1) -> list[Core]:
    return [Core(cpus=tuple(range(c * wide, (c + 1) * wide)), node=0) for c in range(count)]


def test_units_nest_from_the_outside_in() -> None:
    units = [range(2), range(2, 4), range(4), range(4, 8), range(8), range(1)]
    assert [core.groups for core in with_groups(cores(8), units)] == [
        *[(0, 2)] * 2,
        *[(0, 3)] * 2,
        *[(1,)] * 4,
    ]


def test_a_unit_across_cores_or_larger_units_divides_nothing() -> None:
    assert {core.groups for core in with_groups(cores(4, 2), [(0, 1, 2), (1, 2, 3, 4)])} == {()}
    found = with_groups(cores(6), [range(4), range(2, 6)])
    assert [core.groups for core in found] == [*[(0,)] * 4, (), ()]


def test_a_unit_counts_for_what_it_has_of_each_node() -> None:
    two = [Core(cpus=(c,), node=c // 4) for c in range(8)]
    found = [core.groups for core in with_groups(two, [(0, 1, 4, 5), (0, 1, 2, 3)])]
    assert found == [(0,), (0,), (), (), (1,), (1,), (), ()]


def test_more_levels_than_any_machine_has_are_cut_or_refused() -> None:
    deep = with_groups(cores(100), [range(n) for n in range(2, 100)])
    assert max(len(core.groups) for core in deep) == MAX_LEVELS
    content = {"nodes": [{"id": 0, "cpus": [0]}], "cores": [{"cpus": [0], "node": 0, "groups": [1] * 999}]}
    with pytest.raises(UsageError, match="groups"):
        Machine.from_dict({"schema": "numaplan/machine/1", **content})


def test_hwloc_clusters_of_a_hybrid_processor() -> None:
    """Two wide cores and two clusters of two narrow ones, under one last-level cache."""

    def core(cpu: int) -> str:
        return f'<object type="Core" cpuset="0x{1 << cpu:x}"><object type="PU" os_index="{cpu}"/></object>'

    clusters = "".join(
        f'<object type="L2Cache" cache_type="0" cpuset="0x{3 << n:x}">{core(n)}{core(n + 1)}</object>'
        for n in (2, 4)
    )
    inner = f'<object type="L3Cache" cache_type="0" cpuset="0x3f">{core(0)}{core(1)}{clusters}</object>'
    node = '<object type="NUMANode" os_index="0" cpuset="0x3f"/>'
    text = f'<topology version="2.0"><object type="Machine" cpuset="0x3f">{node}{inner}</object></topology>'
    machine = hwloc_machine(text.encode(), "x")
    assert [core.groups for core in machine.cores] == [(), (), (0,), (0,), (1,), (1,)]
    assert {core.l3 for core in machine.cores} == {0}


def test_sysfs_dies_and_caches(tmp_path: Path) -> None:
    """Two dies of two caches of two cores."""
    system = tmp_path / "sys/devices/system"
    for cpu in range(8):
        folder = system / f"cpu/cpu{cpu}"
        (folder / "topology").mkdir(parents=True)
        (folder / "topology/core_cpus_list").write_text(f"{cpu}\n")
        (folder / "topology/die_cpus_list").write_text("0-3\n" if cpu < 4 else "4-7\n")
        (folder / "topology/package_cpus_list").write_text("0-7\n")
        cache = folder / "cache/index3"
        cache.mkdir(parents=True)
        (cache / "level").write_text("3\n")
        (cache / "type").write_text("Unified\n")
        (cache / "shared_cpu_list").write_text(f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}\n")
    machine = sysfs_machine(tmp_path)
    assert [core.groups for core in machine.cores] == [
        *[(0, 2)] * 2,
        *[(0, 3)] * 2,
        *[(1, 4)] * 2,
        *[(1, 5)] * 2,
    ]
    assert [core.l3 for core in machine.cores] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert Machine.from_json(machine.to_json()) == machine


def machine_of(paths: list[tuple[int, ...]], wide: int = 1) -> Machine:
    return Machine.from_dict({
        "schema": "numaplan/machine/1",
        "nodes": [{"id": 0, "cpus": list(range(len(paths) * wide))}],
        "cores": [
            {"cpus": list(range(c * wide, (c + 1) * wide)), "node": 0, "groups": path}
            for c, path in enumerate(paths)
        ],
    })  # fmt: skip


def test_threads_keep_together_at_every_level() -> None:
    """Eight threads in a random order: pairs within fours, on two dies of two caches of two cores."""
    order = np.random.default_rng(4).permutation(8)
    comm = np.zeros((8, 8))
    for a in range(8):
        for b in range(8):
            comm[order[a], order[b]] = (
                0 if a == b else 100 if a // 2 == b // 2 else 5 if a // 4 == b // 4 else 1
            )
    cpus = assign_cpus(comm, machine_of([(c // 4, 2 + c // 2) for c in range(8)]), [0] * 8)
    seat = [cpus[thread][0] for thread in order]
    assert sorted(seat) == list(range(8))
    assert all(seat[a] // 2 == seat[a + 1] // 2 for a in (0, 2, 4, 6))
    assert len({cpu // 4 for cpu in seat[:4]}) == len({cpu // 4 for cpu in seat[4:]}) == 1


def test_cores_of_different_depth() -> None:
    comm = np.zeros((6, 6))
    for a, b in ((0, 3), (1, 4)):
        comm[a, b] = comm[b, a] = 10
    cpus = [own[0] for own in assign_cpus(comm, machine_of([(), (), (0,), (0,), (1,), (1,)]), [0] * 6)]
    assert sorted(cpus) == list(range(6))
    assert {frozenset((cpus[0], cpus[3])), frozenset((cpus[1], cpus[4]))} == {
        frozenset((2, 3)),
        frozenset((4, 5)),
    }


def test_threads_that_share_a_cpu_are_the_least_busy() -> None:
    comm = np.ones((3, 3)) - np.eye(3)
    comm[1, 2] = comm[2, 1] = 50
    cpus = assign_cpus(comm, machine_of([(), ()]), [0] * 3, loads=np.array([1.0, 9.0, 9.0]))
    assert cpus[1] != cpus[2]


def test_busy_threads_get_different_cores() -> None:
    """Two of four threads carry the load and talk: with a core of two hwthreads each, they are set apart."""
    comm = np.zeros((4, 4))
    comm[0, 1] = comm[1, 0] = 10
    machine = machine_of([(), ()], wide=2)
    busy = assign_cpus(comm, machine, [0] * 4, loads=np.array([9.0, 9.0, 1.0, 1.0]))
    alike = assign_cpus(comm, machine, [0] * 4, loads=np.ones(4))
    assert busy[0][0] // 2 != busy[1][0] // 2
    assert alike[0][0] // 2 == alike[1][0] // 2
