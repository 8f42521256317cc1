"""Pinned threads: every method holds them, best finds the optimum around them."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError
from numaplan.mapper import METHODS, PlanOptions, Workload, evaluate, make_plan, map_threads
from numaplan.mapper.threads.pins import read_pins, resolve_pins
from numaplan.mapper.threads.problem import Floats, Nodes
from numaplan.profiler import Machine
from tests.support.properties import examples

OWN = [name for name, method in METHODS.items() if not method.needs]


def random_comm(threads: int, seed: int) -> Floats:
    comm = np.random.default_rng(seed).random((threads, threads)) ** 4
    np.fill_diagonal(comm, 0)
    return comm + comm.T


@pytest.mark.parametrize("method", OWN)
@pytest.mark.parametrize("objective", ["remote", "hop", "balanced"])
def test_every_method_holds_pins_and_seats(method: str, objective: str) -> None:
    pins = {0: 1, 5: 1, 3: 0}
    for seed in range(5):
        loads = np.random.default_rng(seed).random(8) + 0.5
        nodes = map_threads(random_comm(8, seed), loads, "4x2", method, objective, pinned=pins)
        assert {thread: nodes[thread] for thread in pins} == pins
        assert np.bincount(nodes, minlength=4).tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("method", ["best", "exact"])
@pytest.mark.parametrize("objective", ["remote", "hop"])
def test_the_optimum_around_pins_is_found(method: str, objective: str) -> None:
    pins = {1: 2, 6: 0, 7: 3}
    free = [thread for thread in range(8) if thread not in pins]
    for seed in range(6):
        comm = random_comm(8, seed)
        found = map_threads(comm, None, "opteron-4x8", method, objective, pinned=pins)

        def cost(nodes: Nodes, comm: Floats = comm) -> float:
            costs = evaluate(comm, None, "opteron-4x8", nodes)
            return costs.hop_cost if objective == "hop" else costs.remote_comm

        least = np.inf
        for order in set(permutations(found[free].tolist())):
            trial = found.copy()
            trial[free] = order
            least = min(least, cost(trial))
        assert cost(found) == pytest.approx(least)


@examples(40)
@given(data=st.data(), threads=st.integers(2, 24), nodes=st.integers(1, 5))
def test_any_pins_hold(data: st.DataObject, threads: int, nodes: int) -> None:
    pins = data.draw(st.dictionaries(st.integers(0, threads - 1), st.integers(0, nodes - 1)))
    found = map_threads(random_comm(threads, threads), None, f"{nodes}x4", effort="fast", pinned=pins)
    assert all(found[thread] == node for thread, node in pins.items())
    counts = np.bincount(found, minlength=nodes)
    held = np.bincount(list(pins.values()), minlength=nodes)
    assert counts.sum() == threads and (counts >= held).all()
    fair = -(-threads // nodes)
    assert (counts <= np.maximum(held, fair)).all()


def test_pins_to_cpus_and_by_process() -> None:
    threads = [("p0", "0"), ("p0", "0.1"), ("p0.1", "0"), ("p0.1", "0.1")]
    machine = Machine.load("2x2")
    workload = Workload(threads, random_comm(4, 1), np.ones(4), {})
    options = PlanOptions(pins={"p0.1:0.1": "cpu:1", "p0:0": "1"})
    plan = make_plan(workload, machine, options).plan
    seats = {(thread.process, thread.path): (thread.node, thread.cpus) for thread in plan.threads}
    assert seats["p0.1", "0.1"] == (0, (1,))
    assert seats["p0", "0"][0] == 1
    assert sorted(cpus for _, cpus in seats.values()) == [(0,), (1,), (2,), (3,)]
    assert plan.provenance["options"]["pins"] == {"p0.1:0.1": "cpu:1", "p0:0": "1"}


def test_what_pins_may_say(tmp_path: Path) -> None:
    (tmp_path / "pins").write_text("# ours\n0.3 = 1\n\np0.1:0 = cpu:5  # the child\n")
    assert read_pins([f"@{tmp_path}/pins", "0=0"]) == {"0.3": "1", "p0.1:0": "cpu:5", "0": "0"}
    for words in (["0.3"], ["0.3=x"], ["=1"], ["0=1", "0=1"], ["0=cpu:-1"], ["@/no/such/file"]):
        with pytest.raises(UsageError):
            read_pins(words)
    threads = [("p0", "0"), ("p0.1", "0")]
    for pins, told in (
        ({"0.7": "0"}, "no thread 0.7"),
        ({"0": "0"}, "2 processes have a thread 0"),
        ({"p0:0": "9"}, "no node 9"),
        ({"p0:0": "cpu:77"}, "no such usable cpu"),
        ({"p0:0": "cpu:1", "p0.1:0": "cpu:1"}, "another thread is pinned there"),
    ):
        with pytest.raises(UsageError, match=told):
            resolve_pins(pins, threads, Machine.load("2x2"))
    with pytest.raises(UsageError, match="pinned to node 5"):
        map_threads(np.ones((2, 2)), None, "2x2", pinned={0: 5})
    with pytest.raises(UsageError, match="pinned thread 2"):
        map_threads(np.ones((2, 2)), None, "2x2", pinned={2: 0})
