"""Programs of every kind have their threads where the plan says, seen in /proc while they run.

`python -m benchmarks starts` starts each 50 times.
"""

import pytest

from tests.support.outside import discover, start
from tests.support.runtimes import KINDS, NotHereError

pytestmark = [pytest.mark.system, pytest.mark.slow]
STARTS = 2


@pytest.mark.parametrize("kind", KINDS)
def test_threads_are_where_the_plan_says(kind: str) -> None:
    try:
        built = KINDS[kind]()
    except NotHereError as missing:
        pytest.skip(str(missing))
    plan = discover(built)
    assert len(plan.threads) >= built.threads
    for _ in range(STARTS):
        for result in start(plan, built):
            assert result.code == 0, result.output
            assert result.seen >= min(built.threads, result.planned - 1)
            assert result.wrong == ()
            assert all(
                set(thread["applied"]) <= set(thread["planned"]) for thread in result.applied["threads"]
            ), result.applied["reasons"]
