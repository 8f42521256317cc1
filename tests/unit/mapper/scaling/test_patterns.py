"""Patterns found in generated matrices, and the matrix of more threads that they give."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from numaplan.mapper import Workload
from numaplan.mapper.scaling.pattern import find_pattern
from numaplan.mapper.scaling.scaled import Scaling, carry_over
from numaplan.mapper.scaling.team import find_teams

Matrix = NDArray[np.float64]
Rule = Callable[[int], Matrix]


def pairs(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.arange(n)[:, None], np.arange(n)[None, :]


def ring(n: int) -> Matrix:
    a, b = pairs(n)
    return ((abs(a - b) == 1) | (abs(a - b) == n - 1)) + 0.02


def chain(n: int) -> Matrix:
    a, b = pairs(n)
    return (abs(a - b) == 1) + 0.01


def every_second_first(n: int) -> Matrix:
    thread = np.arange(n)
    place = np.where(thread % 2 == 0, thread // 2, (n + 1) // 2 + thread // 2)
    return chain(n)[np.ix_(place, place)]


def grid(n: int) -> Matrix:
    wide = {4: 2, 8: 2, 16: 4, 64: 8}[n]
    a, b = pairs(n)
    rows, columns = abs(a // wide - b // wide), abs(a % wide - b % wide)
    return 5.0 * ((rows == 0) & (columns == 1)) + ((columns == 0) & (rows == 1)) + 0.01


def cube(n: int) -> Matrix:
    sides = {4: (2, 2, 1), 8: (2, 2, 2), 16: (4, 2, 2), 64: (4, 4, 4)}[n]
    place = np.array(np.unravel_index(np.arange(n), sides))
    return (abs(place[:, :, None] - place[:, None, :]).sum(axis=0) == 1) + 0.01


def groups(n: int) -> Matrix:
    a, b = pairs(n)
    return (a // 4 == b // 4) + 0.02


def hub(n: int) -> Matrix:
    a, b = pairs(n)
    return ((a == 0) | (b == 0)) + 0.02


def hub_and_ring(n: int) -> Matrix:
    return hub(n) + 3 * ring(n)


def stages(n: int) -> Matrix:
    a, b = pairs(n)
    return (abs(a * 4 // n - b * 4 // n) == 1) + 0.01


def all_to_all(n: int) -> Matrix:
    return np.ones((n, n)) / n


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (ring, chain, every_second_first, grid, cube, groups, hub, hub_and_ring, stages, all_to_all)
}


def noisy(matrix: Matrix, rng: np.random.Generator, much: float = 0.1) -> Matrix:
    """The same, symmetric and without a diagonal, every pair off by its part and by part of the mean."""
    found = matrix * (1 + much * rng.standard_normal(matrix.shape))
    found = np.triu(np.maximum(found + much * matrix.mean() * rng.standard_normal(matrix.shape), 0), 1)
    return found + found.T


def workload(comm: Matrix, loads: Matrix | None = None, names: tuple[str, ...] = ()) -> Workload:
    return Workload(
        threads=[("p0", f"0.{i}" if i else "0") for i in range(len(comm))],
        comm=comm,
        loads=np.ones(len(comm)) if loads is None else loads,
        sources={},
        names=names,
    )


def correlation(one: Matrix, other: Matrix) -> float:
    upper = np.triu_indices(len(one), 1)
    return float(np.corrcoef(one[upper], other[upper])[0, 1])


def carried(rule: Rule, n: int = 64, counts: tuple[int, ...] = (4, 8, 16), seed: int = 0) -> Scaling:
    rng = np.random.default_rng(seed)
    return carry_over([workload(noisy(rule(count), rng)) for count in counts], n)


@pytest.mark.parametrize("name", RULES)
def test_patterns_are_found_through_noise_and_hold_for_more_threads(name: str) -> None:
    found = carried(RULES[name])
    assert found.quality.enough, found.quality
    comm = np.asarray(found.workload.comm)
    assert comm.shape == (64, 64) and (comm == comm.T).all() and not np.diag(comm).any()
    assert [path for _, path in found.workload.threads] == ["0", *(f"0.{i}" for i in range(1, 64))]
    if name != "all_to_all":
        assert correlation(comm, RULES[name](64)) > 0.9


@pytest.mark.parametrize("name", ["ring", "chain", "every_second_first", "groups", "hub", "stages"])
def test_two_numbers_of_threads_are_enough_for_plain_patterns(name: str) -> None:
    found = carried(RULES[name], counts=(4, 8))
    assert found.quality.enough
    assert correlation(np.asarray(found.workload.comm), RULES[name](64)) > 0.9


def test_strong_rows_of_a_grid_stay_strong() -> None:
    comm = np.asarray(carried(grid).workload.comm)
    assert comm[9, 10] == pytest.approx(5 * comm[9, 17], rel=0.15)


def test_random_matrices_have_no_pattern() -> None:
    for seed in range(5):
        found = carried(lambda n: np.ones((n, n)), seed=seed)
        assert found.quality.enough  # all alike but for noise
        rng = np.random.default_rng(seed)
        worse = carry_over([workload(noisy(rng.exponential(size=(n, n)), rng)) for n in (4, 8, 16)], 64)
        assert not worse.quality.enough


def test_threads_in_another_order_in_each_recording_have_no_roles() -> None:
    rng = np.random.default_rng(0)
    recorded = []
    for n in (8, 16, 32):
        order = rng.permutation(n)
        recorded.append(workload(ring(n)[np.ix_(order, order)]))
    assert not carry_over(recorded, 64).quality.enough


def with_helper(rule: Rule, n: int, at: int) -> tuple[Matrix, Matrix]:
    """A thread more that hardly does anything, the at-th of all."""
    rows = np.insert(np.arange(n), at, n)
    comm = np.zeros((n + 1, n + 1))
    comm[:n, :n] = rule(n)
    loads = np.append(np.ones(n), 0.01)
    return comm[np.ix_(rows, rows)], loads[rows]


@pytest.mark.parametrize("at", [1, -1])
@pytest.mark.parametrize("rule", [ring, chain, groups], ids=lambda rule: rule.__name__)
def test_a_helper_is_beside_the_team_wherever_it_was_made(rule: Rule, at: int) -> None:
    rng = np.random.default_rng(1)
    recorded = []
    for n in (4, 8, 16):
        comm, loads = with_helper(rule, n, at if at > 0 else n)
        recorded.append(workload(noisy(comm, rng, 0.03), loads))
    found = carry_over(recorded, 64)
    helper = "0.1" if at == 1 else "0.64"
    assert found.beside == (helper,) and len(found.workload.threads) == 65
    paths = [path for _, path in found.workload.threads]
    place = paths.index(helper)
    assert found.workload.loads[place] < 0.1 * found.workload.loads.max()
    members = [i for i in range(65) if i != place]
    assert correlation(np.asarray(found.workload.comm)[np.ix_(members, members)], rule(64)) > 0.9


def test_helpers_with_names_of_their_own_may_be_busy() -> None:
    recorded = []
    for n in (4, 8):
        comm = np.pad(ring(n), (0, 1), constant_values=0.5)
        recorded.append(workload(comm, names=(*["work"] * n, "log")))
    found = carry_over(recorded, 16)
    assert found.beside == ("0.16",)


def test_a_main_thread_that_waits_is_beside_the_team() -> None:
    recorded = []
    for n in (4, 8, 16):
        comm = np.zeros((n + 1, n + 1))
        comm[1:, 1:] = chain(n)
        recorded.append(workload(comm, np.append(0.0, np.ones(n))))
    found = carry_over(recorded, 64)
    assert found.beside == ("0",) and found.recorded == (4, 8, 16)
    assert len(found.workload.threads) == 65 and found.workload.loads[0] == 0


def test_a_master_beside_its_workers_is_told_by_the_command_line() -> None:
    recorded = []
    for n in (4, 8):
        made = workload(hub(n + 1))
        recorded.append(Workload(**{**_fields(made), "argv": ("./app", str(n))}))
    teams = find_teams(recorded)
    assert [len(team) for team in teams] == [4, 8] and not teams[0].leads
    found = carry_over(recorded, 16)
    assert found.beside == ("0",) and found.quality.enough
    assert correlation(np.asarray(found.workload.comm), hub(17)) > 0.99


def _fields(made: Workload) -> dict[str, object]:
    return {name: getattr(made, name) for name in made.__struct_fields__}


def test_loads_of_the_ends_and_of_every_second_place_are_kept() -> None:
    ends = [workload(chain(n), np.array([3.0, *[1.0] * (n - 2), 2.0])) for n in (4, 8)]
    loads = carry_over(ends, 16).workload.loads
    assert loads[0] == pytest.approx(3 * loads[5]) and loads[-1] == pytest.approx(2 * loads[5])
    second = [workload(chain(n), np.tile([1.0, 3.0], n // 2)) for n in (4, 8)]
    loads = carry_over(second, 16).workload.loads
    assert loads[1::2] == pytest.approx(3 * loads[::2])


def test_what_two_recordings_cannot_tell_apart_is_said() -> None:
    """Rows of two are a square grid with four threads and with eight."""
    found = carried(lambda n: grid(n) if n > 4 else grid(4), counts=(4, 8))
    assert found.quality.other and found.quality.agreement < 0.9


def test_weights_follow_the_number_of_threads() -> None:
    """A hub that is used more and more, beside neighbours that are as before."""
    pattern = find_pattern([ring(n) + n / 4 * hub(n) for n in (4, 8, 16)])
    shares = [pattern.shares(n)["the first with all"] for n in (4, 8, 16, 64)]
    assert shares == sorted(shares) and shares[-1] > 0.8
