"""Threads matched to the plan's roles by what they use and whom they share it with."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.launcher.enforce.plan_table import encode
from numaplan.launcher.roles.match import match_roles
from numaplan.launcher.roles.memory_use import BLOCKS, LiveUse, RoleUse
from numaplan.launcher.verify.logged_run import LoggedRegion, LoggedRun, LoggedThread
from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanRegion, PlanThread, Predicted, RegionKey, Run
from numaplan.profiler.sampling.samples import LiveSamples

THREADS = 6
PART = 16 * 4096
START = 0x7F0000000000


@given(st.permutations(range(9)), st.integers(0, 1000))
def test_any_order_is_found_again_by_use(order: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    use = np.eye(9).repeat(4, axis=1) * 100 + rng.random((9, 36))
    found = match_roles(use, use[np.argsort(order)])
    assert found.threads.tolist() == order
    assert found.fit >= found.fit_before and found.fit > 0.9


def test_an_order_is_found_by_communication_alone() -> None:
    rng = np.random.default_rng(5)
    comm = rng.random((8, 8)) ** 4
    comm = comm + comm.T
    np.fill_diagonal(comm, 0)
    order = rng.permutation(8)
    back = np.argsort(order)
    nothing = np.ones((8, 1))
    found = match_roles(nothing, nothing, comm, comm[np.ix_(back, back)])
    assert found.threads.tolist() == order.tolist()


def test_what_fits_as_it_is_stays() -> None:
    same = np.ones((5, 3))
    found = match_roles(same, same)
    assert found.threads.tolist() == list(range(5)) and found.fit == pytest.approx(1.0)
    assert match_roles(np.zeros((3, 2)), np.zeros((3, 2))).threads.tolist() == [0, 1, 2]


def plan_of_parts() -> Plan:
    """Thread i uses part i of a block; the first half is on node 0, the second on node 1."""
    machine = Machine.load("2x4")
    key = RegionKey(kind="heap", name="app+0x10", bytes=THREADS * PART, thread="0", sequence=1)
    half = THREADS // 2 * PART
    return Plan(
        app=PlanApp(threads=THREADS),
        machine=PlanMachine.of(machine),
        method="best",
        objective="remote",
        threads=tuple(
            PlanThread(path=f"0.{n + 1}", thread=n, node=2 * n // THREADS, cpus=(n,), load=1.0)
            for n in range(THREADS // 2)
        )
        + tuple(
            PlanThread(path=f"0.{n + 1}", thread=n, node=1, cpus=(n + 1,), load=1.0)
            for n in range(THREADS // 2, THREADS)
        ),
        memory=(
            PlanRegion(
                region=key,
                policy="bind",
                runs=(Run(offset=0, bytes=half, node=0), Run(offset=half, bytes=half, node=1)),
            ),
        ),
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )


def samples_of(parts: list[int]) -> LiveSamples:
    """Thread with tid 100 + i touches every page of part parts[i]."""
    tid = np.repeat(np.arange(THREADS) + 100, 16)
    addr = START + np.repeat(np.array(parts), 16) * PART + np.tile(np.arange(16) * 4096, THREADS)
    count = len(tid)
    return LiveSamples(
        time_ns=np.arange(count),
        pid=np.full(count, 7),
        tid=tid,
        cpu=np.zeros(count, np.int64),
        addr=addr.astype(np.uint64),
        event=np.zeros(count, np.uint8),
        is_write=np.ones(count, np.bool_),
        latency_ns=np.full(count, np.nan),
        missed=np.zeros(count, np.bool_),
        count=np.ones(count),
        instructions=(),
        lost=0,
    )


def logged_parts() -> LoggedRun:
    logged = LoggedRun(processes=["p0"])
    for n in range(THREADS):
        logged.threads["p0", f"0.{n + 1}"] = LoggedThread("p0", f"0.{n + 1}", 100 + n, planned=True, pid=7)
    logged.regions[0] = LoggedRegion(bytes=THREADS * PART, address=START, pid=7)
    return logged


@given(st.permutations(range(THREADS)))
def test_by_the_plan_alone_threads_find_their_node(parts: list[int]) -> None:
    plan = plan_of_parts()
    table = encode(plan, {}, lambda _module, _symbol: None)
    roles = RoleUse.of_plan(plan, table)
    live = LiveUse(samples_of(parts), logged_parts(), table, roles)
    assert live.samples == 16 * THREADS and len(live.tids) == THREADS
    found = match_roles(roles.use, live.use)
    for role, thread in enumerate(found.threads.tolist()):
        assert plan.threads[role].node == 2 * parts[thread] // THREADS
    assert found.fit == pytest.approx(1.0)


def test_pieces_of_a_region() -> None:
    plan = plan_of_parts()
    table = encode(plan, {}, lambda _module, _symbol: None)
    by_node = RoleUse.of_plan(plan, table)
    size = THREADS * PART
    assert by_node.piece(0, np.array([0, size // 2 - 1, size // 2, size - 1])).tolist() == [0, 0, 1, 1]
    by_block = RoleUse(plan, table, np.zeros((THREADS, BLOCKS)), None, by_blocks=True)
    assert by_block.piece(0, np.array([0, size - 1, size])).tolist() == [0, BLOCKS - 1, -1]
    assert live_of_other_process(plan) == 0


def live_of_other_process(plan: Plan) -> int:
    table = encode(plan, {}, lambda _module, _symbol: None)
    logged = logged_parts()
    logged.regions[0].pid = 8
    return LiveUse(samples_of(list(range(THREADS))), logged, table, RoleUse.of_plan(plan, table)).samples
