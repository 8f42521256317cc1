"""How far what is expected of placements may be off, where samples tell who exchanges lines with whom."""

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.mapper import Plan, PlanOptions, make_plan
from numaplan.mapper.workload.workload import Workload
from numaplan.profiler import Machine
from tests.support.timed import workload

THREADS, LINES = 8, 1e6


def sampled(events: int, seed: int) -> Workload:
    """All exchange alike, and as many lines whatever is sampled; so many events show whose they are."""
    pairs = [(one, other) for one in range(THREADS) for other in range(one)]
    seen = np.random.default_rng(seed).multinomial(events, np.full(len(pairs), 1 / len(pairs)))
    work = workload(THREADS, dict(zip(pairs, seen.tolist(), strict=True)))
    assert work.use is not None
    return replace(work, use=work.use.with_lines(work.use.lines * (LINES / events)))


def plan_of(work: Workload) -> Plan:
    return make_plan(work, Machine.load("4x2"), PlanOptions(method="cmlb")).plan


@pytest.mark.parametrize("events", [20, 60, 200, 1000])
def test_a_plan_by_chance_gains_no_more_than_what_is_unsure(events: int) -> None:
    """By pairs of which more events were seen, against threads in order, which costs the same in truth."""
    plans = [plan_of(sampled(events, seed)).predicted for seed in range(5)]
    gains = [plan.costs["bound in order"] - plan.cost for plan in plans]
    assert max(gains) > 0
    assert all(gain < 2 * plan.doubt for gain, plan in zip(gains, plans, strict=True))


def test_the_more_events_the_less_is_unsure() -> None:
    few, many = (plan_of(sampled(events, 1)).predicted.doubt for events in (100, 10_000))
    assert few == pytest.approx(10 * many, rel=0.2)
