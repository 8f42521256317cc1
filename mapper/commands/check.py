"""`nmap check`: does the plan in the repository still fit what the program does today?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from numaplan.common import Json, Option, print_json, print_lines

from .workload import OneTrace, WorkloadCommand, say

if TYPE_CHECKING:
    from ..planning.judge.check import Verdict


class CheckCommand(WorkloadCommand, frozen=True):
    """Judge a plan by today's trace: exit 0 when it is still good, 1 when it has become worse, 2 for misuse.

    Example: nmap check trace.db --baseline plan.json --max-regress 5% --junit check.xml
    """

    baseline: Annotated[Path, Option(help="The plan to judge.")]
    trace: OneTrace = None
    max_regress: Annotated[str, Option(help="How much worse than today's best it may be.")] = "5%"
    strict: Annotated[bool, Option(help="Count losses that are small, or may be chance, too.")] = False
    junit: Annotated[Path | None, Option(writes=True, help="Write the verdict as JUnit XML.")] = None
    update: Annotated[bool, Option(help="Write today's best plan over the baseline.")] = False
    as_json: Json = False

    def run(self) -> int:
        from numaplan.common import errors_in_junit, write_document

        from ..planning.judge.check import to_document, to_junit

        with errors_in_junit(self.junit, "numaplan", "nmap.check"):
            verdict = self._judge()
        say(verdict.notes)
        if self.junit is not None:
            write_document(self.junit, to_junit(verdict))
        if self.update:
            verdict.today.save(self.baseline)
            say([f"{self.baseline}: now today's best plan; the verdict is on the old one"])
        if self.as_json:
            print_json(to_document(verdict))
        else:
            print_lines(*verdict.lines)
        return 0 if verdict.ok or self.update else 1

    def _judge(self) -> "Verdict":
        from ..plan_file.plan import Plan
        from ..planning.judge.check import check_plan_today, parse_share
        from ..workload.part import WHOLE, recorded_part

        allowed = parse_share(self.max_regress)
        plan = Plan.load(self.baseline)
        part = self.part if self.part != WHOLE else recorded_part(plan.provenance, str(self.baseline))
        workload = self.read_workload(self.trace, objective=plan.objective, part=part)
        say([*workload.notes, *(workload.not_balanced if plan.objective != "time" else ())])
        return check_plan_today(
            plan,
            workload,
            plan.machine.machine(),
            allowed,
            seed=self.seed,
            effort=self.effort,
            name=str(self.baseline),
            strict=self.strict,
        )
