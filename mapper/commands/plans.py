"""`nmap show`, `nmap diff`, `nmap export`: show plans, and export them to other launchers."""

import sys
from pathlib import Path
from typing import Annotated

from numaplan.common import Argument, Command, Option, print_lines

PlanFile = Annotated[Path, Argument("PLAN", help="A plan.json that 'nmap plan' wrote.")]


class ShowCommand(Command, frozen=True):
    """Show a plan: the threads on each node, the memory, what it should cost.

    Example: nmap show plan.json
    """

    plan: PlanFile

    def run(self) -> None:
        from ..plan_file.plan import Plan
        from .draw import show_plan

        show_plan(Plan.load(self.plan))


class DiffCommand(Command, frozen=True):
    """Show what differs between two plans: threads and memory that move, and the costs.

    Example: nmap diff old.json new.json
    """

    first: PlanFile
    second: Annotated[Path, Argument("PLAN2", help="The plan to compare with it.")]

    def run(self) -> None:
        from ..plan_file.diff import differences
        from ..plan_file.plan import Plan

        lines = differences(Plan.load(self.first), Plan.load(self.second))
        print_lines(*(lines or ["both plans place everything the same"]))


class ExportCommand(Command, frozen=True):
    """Write a plan's thread placement in the language of another launcher.

    Example: eval "$(nmap export plan.json --format omp)"
    """

    plan: PlanFile
    form: Annotated[
        str, Option("--format", help="omp, gomp, kmp, rankfile, slurm, taskset, numactl or hwloc.")
    ]
    output: Annotated[Path | None, Option("-o", "--output", help="Write to a file.")] = None

    def run(self) -> None:
        from numaplan.common import write_document

        from ..plan_file.export import export_plan
        from ..plan_file.plan import Plan

        text = export_plan(Plan.load(self.plan), self.form)
        if self.output is None:
            sys.stdout.write(text)
        else:
            write_document(self.output, text.encode())
