"""Judge a plan by what the program does today."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from numaplan.common import JUnitCase, UsageError, junit_xml, other_script, program_name
from numaplan.machine import Machine

from ...plan_file.parts import Metrics, PlanApp
from ...plan_file.plan import Plan
from ...workload.workload import Workload
from ..options import options_of
from ..planner import make_plan
from .judging import Judged, judge

SCHEMA = "numaplan/check/1"
# Of all communication, of what the program waits for without a plan, or of a node's share of the load: what
# breaks no build.
SMALL = 0.005
PERCENT = 1000  # up to which a bare number may be meant in percent; larger ones allow anything


@dataclass(frozen=True)
class Verdict:
    """ok: whether the baseline is still good enough; regress: how much worse than today's best, relatively;
    loss: by what share of all communication, or of what the program waits for without a plan; chance: how
    much of that may be chance; lines: for people, the verdict first, then the thread pairs that cost most;
    notes: what makes it doubtful that the plan is for this program; today: today's best plan.
    """

    ok: bool
    name: str
    regress: float
    loss: float
    chance: float
    allowed: float
    baseline: Metrics
    best: Metrics
    reason: str
    lines: Sequence[str]
    notes: Sequence[str]
    today: Plan


class _Document(msgspec.Struct):
    schema: str
    ok: bool
    baseline: Metrics
    best: Metrics
    regress: float
    loss: float
    chance: float
    allowed: float
    reason: str
    notes: Sequence[str]


def parse_share(text: str) -> float:
    """A share given as `5%` or `0.05`; raises UsageError for anything else, a negative one, and a bare number
    that may be meant in percent."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"--max-regress {text}", "give a share, such as 5% or 0.05")
    if 1 < value <= PERCENT and not text.endswith("%"):
        raise UsageError(f"--max-regress {text}: is {value:.0%}", f"write {value:g}% or {value / 100:g}")
    return value


def check_plan_today(
    plan: Plan,
    workload: Workload,
    machine: Machine,
    allowed: float,
    *,
    seed: int,
    effort: str,
    name: str,
    strict: bool = False,
) -> Verdict:
    """Cost the plan on today's workload against the best placement of today.

    strict: a loss, or a node's load off its share, counts however small it is, and though it may be chance.
    Raises UsageError when the plan and today's run differ in their threads: there is nothing to compare.
    """
    options = options_of(plan, effort, seed, name)
    today = make_plan(workload, machine, options).plan
    judged = judge(plan, today, workload, machine, options, name)
    lost = judged.regress > allowed and (strict or judged.loss > max(SMALL, judged.chance))
    over, unsure = judged.unbalance.over, judged.unbalance.chance
    uneven = over > 0 and (strict or over > max(SMALL, unsure))
    ok = not (lost or uneven)
    said = [_of_loads(judged, uneven=uneven)] if over > 0 else []
    if lost or not uneven:
        said.append(_of_cost(judged, allowed, lost=lost))
    reason = "; ".join(said if uneven else reversed(said))
    verdict = f"{name}: {'still good' if ok else 'worse than necessary'}: {reason}"
    return Verdict(
        ok=ok,
        name=name,
        regress=judged.regress,
        loss=judged.loss,
        chance=judged.chance,
        allowed=allowed,
        baseline=judged.baseline,
        best=judged.best,
        reason=reason,
        lines=[verdict, *judged.pairs],
        notes=[*_doubts(plan, workload.app, name), *judged.notes],
        today=today,
    )


def _of_cost(judged: Judged, allowed: float, *, lost: bool) -> str:
    """What a plan costs more; lost: whether it fails for that."""
    text = f"costs {judged.regress:.1%} more than today's best placement, {allowed:.1%} allowed"
    if lost or judged.regress <= allowed:
        return text
    small = f"which is {judged.loss:.2%} of {judged.whole}" if judged.loss <= SMALL else "which may be chance"
    return f"{text}, {small} (--strict counts that)"


def _of_loads(judged: Judged, *, uneven: bool) -> str:
    """How far a node's load is off its share, beyond what is allowed; uneven: whether a plan fails for it."""
    found = judged.unbalance
    text = f"a node's load is {found.off:.1%} off its share, {found.allowed:.1%} allowed"
    if uneven:
        return text
    small = "is little more" if found.over <= SMALL else "may be chance"
    return f"{text}, which {small} (--strict counts that)"


def _doubts(plan: Plan, app: PlanApp, name: str) -> list[str]:
    """What makes it doubtful that a plan is for the program that runs today, `app`, in sentences."""
    found = []
    one, other = program_name(plan.app.argv), program_name(app.argv)
    rebuilt = plan.app.build_id != app.build_id or not app.build_id
    rebuilt |= other_script(plan.app.argv, app.argv, (plan.app.executable, app.executable))
    if one and other and one != other and rebuilt:
        found.append(f"{name} was made for another program ({one}, not {other})")
    missing = len(plan.threads) - app.threads
    if missing > 0:
        found.append(f"{missing} of the {len(plan.threads)} threads in {name} did not run today")
    return found


def to_document(verdict: Verdict) -> bytes:
    """The answer of `nmap check --json`."""
    content = {field: getattr(verdict, field) for field in _Document.__struct_fields__ if field != "schema"}
    return msgspec.json.encode(_Document(schema=SCHEMA, **content))


def to_junit(verdict: Verdict) -> bytes:
    """The verdict as one JUnit test case."""
    reason, text = ("", "") if verdict.ok else (verdict.reason, "\n".join(verdict.lines))
    case = JUnitCase("nmap.check", verdict.name, reason, "regression", text)
    return junit_xml("numaplan", [case])
