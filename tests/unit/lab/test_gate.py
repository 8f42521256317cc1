"""Gates on comparisons: what they say, and what they refuse."""

import math

import msgspec
import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError
from numaplan.lab.runs.gate import check_gate, gate_names
from numaplan.lab.runs.results import METRICS, ConfigResult, Spread


def config(**medians: float) -> ConfigResult:
    spreads = {name: Spread(medians.get(name, 0.0), 0.0, 0.0) for name in METRICS}
    return ConfigResult(runs=[], **spreads)


CONFIGS = {
    "default": config(local_share=0.25, remote=1000, seconds=2),
    "no-autonuma": config(local_share=0.2, remote=900),
    "plan": config(local_share=0.9, remote=100),
}


@pytest.mark.parametrize(
    ("gate", "ok"),
    [
        ("plan.local_share >= default.local_share + 0.05", True),
        ("plan.local_share>=default.local_share+0.66", False),
        ("plan.remote <= 0.5 * default.remote", True),
        ("plan.remote <= 5% * default.remote", False),
        ("plan.remote / default.remote == 0.1", True),
        ("no-autonuma.remote - default.remote < 0", True),
        ("(plan.remote + 2) * 3 > 305", True),
        ("default.seconds > 1e1", False),
        ("1 - plan.local_share <= 10.1%", True),
        ("2 / 5% == 40", True),
        ("default.remote-no-autonuma.remote > 1e1-plan.remote", True),
        ("plan.remote\t<\n1 + 1 " + "+ 1 " * 230, True),
    ],
)
def test_gates_hold_or_not(gate: str, ok: bool) -> None:
    assert check_gate(gate, CONFIGS).ok is ok


@pytest.mark.parametrize(
    ("gate", "ok"),
    [
        ("default.remote / plan.migrated >= 2", True),  # any number to none
        ("default.remote / plan.migrated < 2", False),
        ("(plan.remote - default.remote) / plan.migrated < 0", True),
        ("plan.migrated / default.migrated <= 1", False),  # none to none: no number
        ("plan.remote / (default.remote - no-autonuma.remote) <= 1", True),
    ],
)
def test_a_count_of_none_loses_no_run(gate: str, ok: bool) -> None:
    """Of a gate that can be read the verdict comes after all runs: an error would throw them away."""
    gate_names(gate)
    assert check_gate(gate, CONFIGS).ok is ok


def test_what_needs_caches_is_refused_without() -> None:
    gate = "plan.cost <= default.cost"
    assert gate_names(gate, cached=True) == {"plan", "default"}
    with pytest.raises(UsageError, match="cost is counted with caches only"):
        gate_names(gate)


@pytest.mark.parametrize(
    ("gate", "why"),
    [
        ("", "at its end"),
        ("plan.remote", "not one comparison"),
        ("plan.remote <", "at its end"),
        ("plan.remote < < 1", "at '< 1'"),
        ("plan.remote < 1 1", "at '1'"),
        ("1 < plan.remote < 2", "not one comparison"),
        ("(1 < plan.remote) < 2", "'1 < plan.remote' is not understood"),
        ("plan.speed < 1", "no metric 'speed'"),
        ("plan < 1", "'plan' is not understood"),
        ("-1 < plan.remote", "'-1' is not understood"),
        ("True < plan.remote", "'True' is not understood"),
        ("plan.remote ** 2 < 1", "not understood"),
        ("plan.remote() < 1", "not understood"),
        ("other.remote < 1", "was not run"),
        ("(plan.remote < 1", "'(' was never closed"),
        ("plan.remote / 0 < 1", "divides by zero"),
        ("plan.remote < 1; import os", "at '; import os'"),
        ("(" * 300 + "1" + ")" * 300 + " < 2", "too many nested"),
        ("1 < " + "1" * 400, "too large"),
        ("1 < " + "(" * 2000, "too long"),
    ],
)
def test_bad_gates_are_refused(gate: str, why: str) -> None:
    with pytest.raises(UsageError, match=r".*") as caught:
        check_gate(gate, CONFIGS)
    assert why in str(caught.value)


def test_names_are_found_without_running() -> None:
    assert gate_names("plan.remote <= 0.5 * no-autonuma.remote") == {"plan", "no-autonuma"}


@given(st.text(alphabet="plan.remote<>=+-*/()% 0123456789", max_size=60))
def test_any_text_is_a_verdict_or_an_error(text: str) -> None:
    try:
        verdict = check_gate(text, CONFIGS)
    except UsageError:
        return
    assert isinstance(verdict.ok, bool)


@given(*(st.floats(0, 1e6).map(lambda value: round(value, 3)) for _ in range(3)))
def test_arithmetic_is_pythons(a: float, b: float, c: float) -> None:
    verdict = check_gate(f"{a:f} + {b:f} * {c:f} >= {a:f}", CONFIGS)
    assert math.isclose(verdict.left, a + b * c)
    assert verdict.ok


def test_a_gate_asks_something_of_a_configuration() -> None:
    with pytest.raises(UsageError, match="'1 < 2': it asks nothing of a configuration"):
        gate_names("1 < 2")


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("plan.cost < 0.1 * default.cost", "63.6 ms and 9.5 ms"),
        ("1e6 > plan.cost - default.cost", "1.0 ms and -31.1 ms"),
        ("plan.local_share > default.local_share + 80%", "90.0% and 105.0%"),
        ("plan.remote > 1e6", "100 and 1,000,000"),
        ("plan.local_share > 0.9001", "90.00% and 90.01%"),  # 90.0% would be no less than 90.0%
        ("plan.cost / default.cost < 0.5", "0.671569 and 0.5"),
        ("plan.remote * default.remote < 1", "100000 and 1"),
        ("plan.remote < plan.local_share", "100 and 0.9"),
        ("failed.cost < default.cost", "– and 94.7 ms"),
    ],
)
def test_values_are_said_in_the_units_of_the_tables(gate: str, said: str) -> None:
    costs = {"plan": 63_597_600.0, "default": 94_700_000.0, "failed": math.nan}
    configs = {
        name: msgspec.structs.replace(CONFIGS.get(name, config()), cost=Spread(cost, cost, cost))
        for name, cost in costs.items()
    }
    verdict = check_gate(gate, configs)
    assert str(verdict) == f"{gate}: {'holds' if verdict.ok else 'does not hold'} ({said})"
