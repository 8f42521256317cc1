"""The loop's own arithmetic against libraries and definitions."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linear_sum_assignment

from numaplan.mapper.online.arithmetic import assign, groups_of, pair_products
from numaplan.mapper.online.registry import policy_names


@given(st.integers(0, 12), st.integers(0, 6), st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 1000]))
def test_no_assignment_is_cheaper(rows: int, spare: int, seed: int, kinds: int) -> None:
    """Also with many equal costs, and negative ones."""
    rng = np.random.default_rng(seed)
    costs = rng.integers(-kinds, kinds, (rows, rows + spare)).astype(np.float64) * rng.random() * 1e6
    chosen = assign(costs)
    assert len(set(chosen.tolist())) == rows
    least = costs[linear_sum_assignment(costs)].sum()
    assert costs[np.arange(rows), chosen].sum() == pytest.approx(least, abs=1e-6)


def test_costs_that_forbid_do_not_spoil_the_others() -> None:
    """1e30 stands for 'not here'; differences of 1 between the rest must still count."""
    costs = np.array([[1e30, 5.0, 4.0], [3.0, 1e30, 1e30], [1e30, 1.0, 1.5]])
    assert assign(costs).tolist() == [2, 0, 1]


@pytest.mark.parametrize("costs", [np.zeros((2, 1)), np.array([[np.nan]]), np.array([[np.inf]])])
def test_what_cannot_be_assigned_is_refused(costs: np.ndarray) -> None:
    """More rows than columns, costs that are no numbers."""
    with pytest.raises(ValueError, match="columns"):
        assign(costs)


def test_products_of_pairs_are_those_of_the_matrix() -> None:
    """Pages by threads, times its transpose."""
    rng = np.random.default_rng(3)
    table = rng.random((200, 7)) * (rng.random((200, 7)) < 0.4)
    page, thread = np.nonzero(table)
    found = pair_products(page, thread, table[page, thread], 7)
    np.testing.assert_allclose(found, table.T @ table)
    np.testing.assert_array_equal(found, found.T)


@given(st.lists(st.one_of(st.integers(0, 20), st.integers(0, 2**63 - 1)), max_size=300))
def test_groups_are_those_of_unique(values: list[int]) -> None:
    """Few and many alike, small and large."""
    keys = np.array(values, dtype=np.int64)
    distinct, inverse = np.unique(keys, return_inverse=True)
    found, group = groups_of(keys)
    np.testing.assert_array_equal(found, distinct)
    np.testing.assert_array_equal(group, inverse)


def test_no_policy_loads_a_large_library() -> None:
    """A loop must be ready before the program has done much; scipy alone takes longer than all the rest."""
    code = (
        "import sys; from numaplan.launcher.online.session import OnlineSession;"
        "from numaplan.mapper.online.registry import make_policy;"
        "from numaplan.launcher.online.example import example_observation;"
        "from numaplan.mapper.online.observation import MachineView;"
        "from numaplan.machine import Machine;"
        "view = MachineView.of(Machine.load('2x2'));"
        "[make_policy(name).decide(example_observation(view), None) for name in sys.argv[1:]];"
        "print(sorted({'scipy', 'pandas', 'networkx', 'duckdb', 'pyarrow', 'plotly'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code, *policy_names()], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
