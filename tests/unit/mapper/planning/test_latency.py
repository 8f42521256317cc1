"""Predicted waiting time of memory accesses: by hand, and from a plan's own page placement."""

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.machine import latencies
from numaplan.mapper import PlanOptions, RegionKey, Workload, make_plan, place_pages
from numaplan.mapper.memory.traffic import first_touch_traffic
from numaplan.mapper.plan_file.summary import summary
from numaplan.mapper.planning.co_place import relative_waits
from numaplan.mapper.planning.predict import mean_latency, serving_time
from numaplan.profiler import Machine

MACHINE = Machine.from_dict({
    "schema": "numaplan/machine/1",
    "nodes": [{"id": 0, "cpus": [0, 1], "memory_bytes": 1 << 30},
        {"id": 3, "cpus": [2, 3], "memory_bytes": 1 << 30},
        {"id": 7, "memory_bytes": 1 << 30},
    ],
    "latency_ns": [[100, 200, 300], [210, 110, 310], [1, 1, 1]],
})  # fmt: skip


def stats(toucher: list[int] | None) -> PageCounts:
    """Four threads; thread t writes page t of a region ten times, thread 3 reads page 0 twice."""
    thread, page = np.array([0, 1, 2, 3, 3]), np.array([0, 1, 2, 3, 0])
    counts = np.array([10, 10, 10, 10, 2])
    return PageCounts(
        regions=[RegionKey(kind="heap", name="a", bytes=4 * 4096)],
        region=np.zeros(5, dtype=np.int64), page=page, thread=thread, accesses=counts,
        writes=np.array([10, 10, 10, 10, 0]), toucher=None if toucher is None else np.array(toucher),
    )  # fmt: skip


def test_first_touch_by_hand() -> None:
    traffic = first_touch_traffic(stats([0, 0, 0, 0, 0]), [0, 0, 3, 3], MACHINE)
    assert traffic is not None and traffic.tolist() == [[20, 0, 0], [22, 0, 0], [0, 0, 0]]
    assert mean_latency(traffic, MACHINE) == pytest.approx((20 * 100 + 22 * 210) / 42)


def test_a_latency_that_nobody_measured_is_not_none() -> None:
    machine = replace(MACHINE, latency_ns=((100, 200, 300), (0, 110, 310), (1, 1, 1)))
    usual = latencies(replace(machine, latency_ns=()))[1, 0]
    assert mean_latency(np.array([[0, 0, 0], [4, 4, 0], [0, 0, 0]]), machine) == pytest.approx(
        (110 + usual) / 2
    )
    assert relative_waits(machine)[1, 0] == pytest.approx(usual / 100 - 1)


def test_the_plans_own_pages_by_hand() -> None:
    plan = place_pages(stats(None), [0, 0, 3, 3], MACHINE)
    assert mean_latency(plan.traffic, MACHINE) == pytest.approx((20 * 100 + 20 * 110 + 2 * 210) / 42)


def test_the_busiest_memory_by_hand() -> None:
    """Node 0 alone serves both nodes' threads; then each its own, or the fast one beside node 0."""
    band = [[64_000, 16_000, 128_000], [16_000, 32_000, 1], [1, 1, 1]]
    machine = replace(MACHINE, bandwidth_mb_s=tuple(map(tuple, band)))
    traffic = np.array([[20.0, 0, 0], [22, 0, 0], [0, 0, 0]])
    assert serving_time(traffic, machine) == pytest.approx((20 * 1 + 22 * 4) / 42)
    assert serving_time(np.diag([20.0, 22, 0]), machine) == pytest.approx(22 * 2 / 42)
    assert serving_time(np.array([[0, 0, 20.0], [0, 0, 0], [0, 0, 0]]), machine) == pytest.approx(0.5)
    assert serving_time(traffic, MACHINE) == serving_time(None, machine) == -1
    assert serving_time(np.zeros((3, 3)), machine) == -1
    broken = replace(machine, bandwidth_mb_s=((0, 1, 1), (1, 1, 1), (1, 1, 1)))
    assert serving_time(traffic, broken) == -1


def test_the_plan_says_what_the_busiest_memory_needs() -> None:
    machine = replace(MACHINE, bandwidth_mb_s=((64_000, 16_000, 1), (16_000, 32_000, 1), (1, 1, 1)))
    comm = np.kron(np.eye(2), np.ones((2, 2)))
    threads = [("p0", path) for path in ("0", "0.1", "0.2", "0.3")]
    workload = Workload(threads, comm, np.ones(4), {}, pages=stats([0, 0, 0, 0, 0]))
    plan = make_plan(workload, machine, PlanOptions()).plan
    predicted = plan.predicted
    assert predicted.today is not None and 0 < predicted.serving_ns < predicted.today.serving_ns
    change = predicted.serving_ns / predicted.today.serving_ns - 1
    said = f"busiest memory needs {predicted.serving_ns:.2f} ns an access, {change:+.0%} against today's"
    assert any(line.startswith(said) for line in summary(plan))


def test_what_is_not_known_is_not_guessed() -> None:
    assert first_touch_traffic(stats(None), [0, 0, 3, 3], MACHINE) is None
    assert mean_latency(None, MACHINE) == -1
    assert mean_latency(np.zeros((3, 3)), MACHINE) == -1
    assert mean_latency(np.ones((2, 2)), Machine.load("2x2")) == -1
    outside = first_touch_traffic(stats([-1, 9, 0, 0, 0]), [0, 0, 3, 3], MACHINE)
    assert outside is not None and outside.sum() == 22


def test_the_plan_says_it_first() -> None:
    comm = np.kron(np.eye(2), np.ones((2, 2)))
    threads = [("p0", path) for path in ("0", "0.1", "0.2", "0.3")]
    workload = Workload(threads, comm, np.ones(4), {}, pages=stats([0, 0, 0, 0, 0]))
    plan = make_plan(workload, MACHINE, PlanOptions()).plan
    predicted = plan.predicted
    assert predicted.latency_ns == pytest.approx((20 * 100 + 20 * 110 + 2 * 210) / 42, rel=0.02)
    assert predicted.first_touch_ns["compact"] == pytest.approx((20 * 100 + 22 * 210) / 42)
    assert predicted.today is not None and predicted.today.threads == "compact"
    assert predicted.today.latency_ns == predicted.first_touch_ns["compact"]
    assert predicted.today.local_share == pytest.approx(20 / 42)
    change = predicted.latency_ns / predicted.today.latency_ns - 1
    assert (
        summary(plan)[0]
        == f"memory access waits {predicted.latency_ns:.0f} ns, {change:+.0%} against today's 158 ns"
    )
    silent = make_plan(replace(workload, pages=None), MACHINE, PlanOptions()).plan
    assert silent.predicted.latency_ns == -1 and "waits" not in "".join(summary(silent))
