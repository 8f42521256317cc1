"""Pools that are made anew in each round, of which the plan knows fewer than there are."""

from pathlib import Path

import msgspec
import pytest

from numaplan.machine import Machine
from tests.support.launching import build, nlaunch, plan_for

pytestmark = pytest.mark.system
COUNT = 3


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize(("flags", "by"), [((), "auto"), ((), "ptrace"), (("-static",), "auto")])
def test_rounds_beyond_the_plan_have_the_seats_of_those_before(
    tmp_path: Path, flags: tuple[str, ...], by: str, *, lanes: bool
) -> None:
    """The second round has other cpus: where the plan tells lanes, what a lane had first counts."""
    cpus = Machine.load("local").cpus
    if len(cpus) < 2:
        pytest.skip("needs two cpus")
    seats = [cpus[1], cpus[0], cpus[1], *[cpus[0]] * COUNT]
    plan = plan_for([build("rounds"), "2", str(COUNT)])
    threads = [
        msgspec.structs.replace(thread, cpus=(seats[n],), lane=n % COUNT + 2 if lanes else msgspec.UNSET)
        for n, thread in enumerate(plan.threads[1:])
    ]
    app = msgspec.structs.replace(plan.app, build_id="")  # that it is linked in another way does not matter
    plan = msgspec.structs.replace(plan, app=app, threads=(plan.threads[0], *threads))
    result, applied = nlaunch(plan, tmp_path, [build("rounds", *flags), "5", str(COUNT)], "--by", by)
    assert result.returncode == 0, result.stderr
    later = {thread["path"]: thread["applied"] for thread in applied["unplanned"]}
    assert len(later) == 3 * COUNT
    assert all(later[f"0.{n}"] == [seats[(n - 1) % COUNT]] for n in range(2 * COUNT + 1, 5 * COUNT + 1))
    (reason,) = applied["reasons"]
    assert reason.startswith("9 threads are not in the plan (")
    assert reason.endswith("they have the cpus of planned ones that had ended") and not applied["ok"]
    assert result.stderr.count(b"not in the plan") == 1


def test_a_round_that_is_larger_floats_with_what_has_no_seat(tmp_path: Path) -> None:
    machine = Machine.load("local")
    plan = plan_for([build("rounds"), "1", str(COUNT)])
    wide, applied = nlaunch(plan, tmp_path, [build("rounds"), "1", str(COUNT + 2)])
    assert wide.returncode == 0 and "cpus of planned ones" not in str(applied["reasons"])
    if len(machine.cpu_nodes) == 1:
        assert [one["applied"] for one in applied["unplanned"]] == [list(machine.cpus)] * 2
    argv = [build("rounds"), "3", str(COUNT)]
    _, inherits = nlaunch(plan, tmp_path, argv, "--unplanned", "inherit")
    assert all(one["applied"] == list(plan.threads[0].cpus) for one in inherits["unplanned"])
