"""What runs in real time is left to the kernel."""

import pytest
from msgspec.structs import replace

from numaplan.mapper.workload.real_time import MOST, REASON
from tests.support.timed import plan_of, workload


@pytest.mark.parametrize(("share", "reason"), [(0.0, ""), (MOST, ""), (MOST + 0.01, REASON), (1.0, REASON)])
def test_a_program_of_which_most_runs_in_real_time_is_left_alone(share: float, reason: str) -> None:
    work = workload(users=[[0], [1], [2], [3]])
    plan = plan_of(replace(work, real_time=share))
    assert plan.alone == reason
    assert bool(plan.threads) == (not reason)


def test_who_asks_for_a_method_gets_it() -> None:
    work = replace(workload(users=[[0], [1], [2], [3]]), real_time=1.0)
    assert plan_of(work, method="compact").threads
