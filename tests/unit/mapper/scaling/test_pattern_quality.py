"""Whether to plan by a pattern: what it predicts, and what the recordings leave open."""

import msgspec
import numpy as np
import pytest

from numaplan.mapper.plan_file.scaling import scaling_lines
from numaplan.mapper.scaling.pattern import find_pattern
from numaplan.mapper.scaling.quality import LeftOut, Quality
from numaplan.mapper.scaling.scaled import carry_over, facts_of
from numaplan.mapper.workload.use import ThreadUse

from .test_patterns import Matrix, carried, correlation, groups, hub, noisy, pairs, ring, workload


def couples(n: int) -> Matrix:
    a, b = pairs(n)
    return (a // 2 == b // 2) + 0.01


def opposite(n: int) -> Matrix:
    a, b = pairs(n)
    return (abs(a - b) == n // 2) + 0.01


def uneven_grid(n: int) -> Matrix:
    wide = {4: 2, 8: 4, 16: 4}[n]
    a, b = pairs(n)
    rows, columns = abs(a // wide - b // wide), abs(a % wide - b % wide)
    return ((rows == 0) & (columns == 1)) + 5.0 * ((columns == 0) & (rows == 1)) + 0.01


def test_few_threads_that_are_predicted_well_do_not_make_up_for_many_that_are_not() -> None:
    four, eight = LeftOut(4, 1.0, 1.0, flat=False), LeftOut(8, 0.89, 0.6, flat=False)
    assert Quality((four, eight)).value == 0.89 and not Quality((four, eight)).enough
    assert Quality((four, LeftOut(8, 0.95, 0.9, flat=False))).enough


def test_ties_that_the_predicted_recording_decides_are_said() -> None:
    """Four threads that all talk are one group, or all with all."""
    found = carried(groups, counts=(4, 8))
    eight = next(one for one in found.quality.left_out if one.threads == 8)
    assert found.quality.enough and eight.quality > 0.9 and eight.alone < 0.5
    said = [line for line in scaling_lines(facts_of(found)) if line.startswith("unsure")]
    assert f"predict 8 threads with {eight.alone:.2f}, and with {eight.quality:.2f}" in said[0]
    assert "each from the others, ties decided by all" in "".join(scaling_lines(facts_of(found)))
    sure = carried(ring, counts=(4, 8))
    assert not any(line.startswith("unsure") for line in scaling_lines(facts_of(sure)))


def leaders(n: int) -> Matrix:
    """Of groups of four, each with its group, and a quarter as much with each other: of eight one pair."""
    a, b = pairs(n)
    led = (a // 4 == b // 4) & ((a % 4 == 0) | (b % 4 == 0)) & (a != b)
    return led + 0.25 * ((a % 4 == 0) & (b % 4 == 0) & (a != b))


@pytest.mark.parametrize(("exact", "said"), [(True, 1), (False, 0)])
def test_what_the_pattern_leaves_of_an_exact_matrix_is_no_noise_and_said(exact: bool, said: int) -> None:
    recorded = []
    for n in (4, 8):
        use = ThreadUse(np.ones(n), leaders(n), np.ones((n, n)), exact=exact)
        recorded.append(msgspec.structs.replace(workload(leaders(n)), use=use))
    found = carry_over(recorded, 16)
    assert found.quality.enough and found.quality.value > 0.98
    facts = facts_of(found)
    assert facts.unexplained == (pytest.approx(0.04, abs=0.002) if exact else 0)
    unsure = [line for line in scaling_lines(facts) if "does not explain 4.0% of the communication" in line]
    assert len(unsure) == said


@pytest.mark.parametrize("counts", [(2, 4), (2, 8), (3, 8)])
def test_two_or_three_threads_do_not_tell_a_pattern(counts: tuple[int, ...]) -> None:
    found = carried(ring, counts=counts)
    assert found.quality.few and not found.quality.enough
    assert any("below 4" in line for line in scaling_lines(facts_of(found)))


def test_couples_come_before_rows_of_a_grid() -> None:
    found = carried(couples, counts=(4, 8), n=16)
    assert found.pattern.features[0] == "groups of 2"
    assert correlation(np.asarray(found.workload.comm), couples(16)) > 0.95
    assert found.quality.other and found.quality.enough


def test_partners_half_the_threads_away_may_be_columns_of_a_grid() -> None:
    found = carried(opposite, counts=(4, 8), n=16)
    assert found.pattern.features[0] == "a half of the threads away"
    other = found.quality.other
    assert other and other.common < 0.1 and found.quality.open and not found.quality.enough
    assert carried(opposite, counts=(4, 8, 16)).quality.enough


def test_a_grid_with_both_directions_stays_one() -> None:
    found = find_pattern([uneven_grid(4), uneven_grid(8)])
    assert sorted(found.features)[:2] == [
        "a square grid, no higher than wide: within columns",
        "a square grid, no higher than wide: within rows",
    ]


def test_another_order_of_threads_is_less_likely() -> None:
    """A grid may be another one of which every second thread has the first places; still it is planned."""
    found = carried(uneven_grid, counts=(4, 8), n=16)
    assert found.quality.agreement < 0.9 and not found.quality.open and found.quality.enough


def test_a_main_thread_that_waits_says_nothing_of_the_pattern() -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        recorded = []
        for n in (16, 32):
            comm = np.zeros((n + 1, n + 1))
            comm[1:, 1:] = noisy(np.ones((n, n)), rng, 0.14)
            recorded.append(workload(comm, np.append(0.0, np.ones(n))))
        found = carry_over(recorded, 64)
        assert found.beside == ("0",)
        assert found.quality.enough and all(one.flat for one in found.quality.left_out)


def test_a_master_beside_the_team_counts() -> None:
    recorded = [workload(hub(n + 1), np.append(0.0, np.ones(n))) for n in (4, 8)]
    found = carry_over(recorded, 16)
    assert found.quality.enough and not any(one.flat for one in found.quality.left_out)
