"""A pytest fixture for projects that keep a plan beside their code: is it still good enough?

    def test_placement(numaplan_check):
        numaplan_check("trace.db", "plan.json", max_regress="5%")

Registered under pytest's entry point `pytest11`; nothing is imported before the fixture is used.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from numaplan.common import NumaplanError

if TYPE_CHECKING:
    from .planning.judge.check import Verdict

Check = Callable[..., "Verdict"]


@pytest.fixture
def numaplan_check() -> Check:
    """A function that fails the test when a plan has become too bad for what a program does today."""
    return check_placement


def check_placement(
    today: str | Path,
    baseline: str | Path,
    *,
    loads: str | Path | None = None,
    max_regress: str = "5%",
    symmetrise: bool = False,
    strict: bool = False,
) -> "Verdict":
    """Fail the test unless the plan `baseline` costs at most `max_regress` more than today's best.

    today: a trace.db, or a communication matrix (.csv, .npz, .mtx) with `loads` beside it. symmetrise: take
    a matrix that counts directions as the mean of both; strict: a loss counts however small it is, and though
    it may be chance. Returns the verdict. Files that cannot be read or
    compared fail the test in one line, too.
    """
    __tracebackhide__ = True
    wrong = ""
    try:
        verdict = _verdict(
            Path(today), Path(baseline), Path(loads) if loads else None, max_regress, symmetrise, strict
        )
    except NumaplanError as error:
        wrong = f"numaplan: {error}"
    if wrong:  # not where it is caught, for pytest would show how it came about
        pytest.fail(wrong, pytrace=False)
    for note in verdict.notes:
        warnings.warn(f"numaplan: {note}", stacklevel=2)
    if not verdict.ok:
        pytest.fail("\n".join(verdict.lines), pytrace=False)
    return verdict


def _verdict(
    today: Path, baseline: Path, loads: Path | None, max_regress: str, symmetrise: bool, strict: bool
) -> "Verdict":
    from .plan_file.plan import Plan
    from .planning.judge.check import check_plan_today, parse_share
    from .workload.from_trace import workload_of_trace
    from .workload.part import recorded_part
    from .workload.workload import workload_of_files

    allowed = parse_share(max_regress)
    plan = Plan.load(baseline)
    is_matrix = today.suffix in (".csv", ".npz", ".mtx")
    workload = (
        workload_of_files(today, loads, symmetrise=symmetrise)
        if is_matrix
        else workload_of_trace(
            today,
            by_phase=plan.objective == "phased",
            part=recorded_part(plan.provenance, str(baseline)),
        )
    )
    return check_plan_today(
        plan,
        workload,
        plan.machine.machine(),
        allowed,
        seed=0,
        effort="normal",
        name=str(baseline),
        strict=strict,
    )
