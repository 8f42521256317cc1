"""Analyses, machines and plans as networkx graphs, and networkx as the judge of what plans claim to cost."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanOptions, PlanRegion, RegionKey, Run, Workload, evaluate, make_plan
from numaplan.mapper.threads.bounds import lower_bound
from numaplan.mapper.threads.problem import new_problem


def communication(seed: int, threads: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.integers(0, 100, (threads, threads)) * (rng.random((threads, threads)) < 0.6), 1)
    return (upper + upper.T).astype(float)


def workload(comm: np.ndarray) -> Workload:
    names = [("p0", f"0.{row}" if row else "0") for row in range(len(comm))]
    return Workload(threads=names, comm=comm, loads=np.arange(1.0, len(comm) + 1), sources={})


def groups(plan: Plan) -> list[set[int]]:
    """Rows of the matrix by node, as the plan's graph has them."""
    graph = plan.graph()
    nodes = [vertex for vertex, kind in graph.nodes(data="kind") if kind == "node"]
    return [{graph.nodes[thread]["thread"] for thread in graph[node]} for node in nodes]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["best", "cmlb", "eagermap", "spectral"])
def test_remote_communication_is_the_cut_that_networkx_finds(seed: int, method: str) -> None:
    comm = communication(seed, 12)
    plan = make_plan(workload(comm), Machine.load("3x4"), PlanOptions(method=method, objective="remote")).plan
    graph, parts = nx.from_numpy_array(comm), groups(plan)
    assert nx.community.is_partition(graph, parts)
    cut = sum(nx.cut_size(graph, one, other, weight="weight") for one, other in combinations(parts, 2))
    assert plan.predicted.remote_comm == pytest.approx(cut)
    assert plan.predicted.remote_share == pytest.approx(cut / graph.size(weight="weight"))
    sizes = [size for _, size in plan.graph().nodes(data="size") if size is not None]
    assert sizes == [4, 4, 4]


def test_hop_cost_is_by_the_distances_of_the_machines_graph() -> None:
    comm, machine = communication(7, 8), Machine.load("opteron-4x8")
    nodes = [machine.cpu_nodes[row % 4].id for row in range(8)]
    distance = {
        (one, other): far for one, other, far in machine.graph().edges(data="distance") if far is not None
    }
    graph, cost = nx.from_numpy_array(comm), 0.0
    for one, other, weight in graph.edges(data="weight"):
        ends = nodes[one], nodes[other]
        cost += weight * (10.0 if ends[0] == ends[1] else distance[f"node {ends[0]}", f"node {ends[1]}"])
    assert evaluate(comm, None, machine, nodes).hop_cost == pytest.approx(cost)


@pytest.mark.parametrize("seed", range(6))
def test_no_bound_on_two_halves_is_above_the_best_cut(seed: int) -> None:
    """All halves of eight threads, each cut by networkx: the bound is below them, the plan is the least."""
    comm = communication(seed, 8)
    graph = nx.from_numpy_array(comm)
    least = min(nx.cut_size(graph, {0, *half}, weight="weight") for half in combinations(range(1, 8), 3))
    machine = Machine.load("2x4")
    plan = make_plan(workload(comm), machine, PlanOptions(objective="remote")).plan
    assert plan.predicted.remote_comm == pytest.approx(least)
    assert lower_bound(new_problem(comm, None, machine, objective="remote")) <= least + 1e-9


def test_groups_that_do_not_talk_are_kept_whole() -> None:
    """Three components of four threads, dealt over the numbers: each is one node's."""
    graph = nx.disjoint_union_all([nx.complete_graph(4)] * 3)
    graph = nx.relabel_nodes(graph, {row: row % 4 * 3 + row // 4 for row in range(12)})
    comm = nx.to_numpy_array(graph, nodelist=range(12))
    plan = make_plan(workload(comm), Machine.load("3x4"), PlanOptions(objective="remote")).plan
    assert sorted(map(sorted, groups(plan))) == sorted(map(sorted, nx.connected_components(graph)))
    assert plan.predicted.remote_comm == 0


def test_a_machines_graph_has_its_nodes_cpus_and_matrices() -> None:
    machine = Machine.load("hpl-4x10")
    graph = machine.graph()
    kinds = [kind for _, kind in graph.nodes(data="kind")]
    assert (kinds.count("node"), kinds.count("cpu")) == (4, 40)
    one, other = machine.node_ids[:2]
    edge = graph.edges[f"node {one}", f"node {other}"]
    assert edge["distance"] == machine.distance_rows[0][1]
    assert edge["latency_ns"] == machine.latency_ns[0][1]
    assert edge["bandwidth_mb_s"] == machine.bandwidth_mb_s[0][1]
    assert set(graph.successors(f"node {one}")) >= {f"cpu {cpu}" for cpu in machine.nodes[0].cpus}


def test_a_plans_graph_has_its_memory() -> None:
    import msgspec

    plan = make_plan(workload(communication(1, 4)), Machine.load("2x2"), PlanOptions()).plan
    key = RegionKey(kind="heap", name="x", bytes=3 << 12)
    ids = plan.machine.machine().node_ids
    runs = (
        Run(offset=0, bytes=4096, node=ids[0]),
        Run(offset=4096, bytes=4096, node=ids[1]),
        Run(offset=8192, bytes=4096, node=ids[0]),
    )
    graph = msgspec.structs.replace(plan, memory=(PlanRegion(region=key, policy="bind", runs=runs),)).graph()
    assert graph.nodes["region 0"] == {"kind": "region", "name": "x", "policy": "bind", "bytes": 3 << 12}
    assert {home: data["bytes"] for home, data in graph["region 0"].items()} == {
        f"node {ids[0]}": 8192,
        f"node {ids[1]}": 4096,
    }
    assert [graph.nodes[f"node {node}"]["bytes"] for node in ids] == [8192, 4096]
