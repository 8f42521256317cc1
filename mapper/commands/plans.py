"""`nmap show`, `nmap diff`, `nmap export`: show plans, and export them to other launchers."""

import sys
from pathlib import Path
from typing import Annotated

from numaplan.common import Argument, Command, Json, Option, UsageError, print_lines

PlanFile = Annotated[Path, Argument("PLAN", help="A plan.json that 'nmap plan' wrote.")]


class ShowCommand(Command, frozen=True):
    """Show a plan: the threads on each node, the memory, what it should cost; of a job the ranks by host.

    Of a folder of reports ('nlaunch --job … --report DIR'): how much of the job was where the plan has it.

    Example: nmap show plan.json
    """

    plan: Annotated[
        Path, Argument("PLAN", help="A plan.json or job.json that 'nmap plan' wrote, or a folder of reports.")
    ]
    host: Annotated[str, Option(help="Of a job: the plan of this host.")] = ""
    as_json: Json = False

    def run(self) -> None:
        from numaplan.common import print_json

        if self.plan.is_dir():
            self._show_reports()
            return
        from ..jobs.document import JobPlan, is_job_plan
        from ..plan_file.plan import Plan
        from .draw.job import show_job
        from .draw.placement import show_plan

        if not is_job_plan(self.plan):
            if self.host:
                raise UsageError(f"--host with {self.plan}", "it is the plan of one machine")
            plan = Plan.load(self.plan)
        elif not self.host:
            job = JobPlan.load(self.plan)
            if self.as_json:
                print_json(job.to_json()[:-1])
            else:
                show_job(job)
            return
        else:
            hosts = JobPlan.load(self.plan, hosts={self.host}).hosts
            if self.host not in hosts:
                raise UsageError(f"{self.plan}: no host {self.host}", "see 'nmap show' without --host")
            plan = hosts[self.host]
        if self.as_json:
            print_json(plan.to_json()[:-1])
        else:
            show_plan(plan)

    def _show_reports(self) -> None:
        import msgspec

        from numaplan.common import print_json

        from ..jobs.reports import read_reports
        from .draw.reports import report_lines

        report = read_reports(self.plan)
        if self.as_json:
            print_json(msgspec.json.format(msgspec.json.encode(report), indent=1))
        else:
            print_lines(*report_lines(report))


class DiffCommand(Command, frozen=True):
    """Show what differs between two plans: threads and memory that move, and the costs.

    Example: nmap diff old.json new.json
    """

    first: PlanFile
    second: Annotated[Path, Argument("PLAN2", help="The plan to compare with it.")]
    as_json: Json = False

    def run(self) -> None:
        from ..plan_file.diff import diff_document, differences
        from ..plan_file.plan import Plan

        plans = Plan.load(self.first), Plan.load(self.second)
        if self.as_json:
            import msgspec

            from numaplan.common import print_json

            print_json(msgspec.json.encode(diff_document(*plans)))
            return
        lines = differences(*plans)
        print_lines(*(lines or ["both plans place everything the same"]))


class ExportCommand(Command, frozen=True):
    """Write a plan's placement in the language of another launcher; of a job, the line that starts it.

    Comments say what that keeps of the plan, and what it loses.

    Example: eval "$(nmap export plan.json --format omp)"

    Example: nmap export job.json --format slurm
    """

    plan: Annotated[Path, Argument("PLAN", help="A plan.json or job.json that 'nmap plan' wrote.")]
    form: Annotated[
        str,
        Option(
            "--format",
            help="omp, gomp, kmp; taskset, numactl, hwloc; cgroup, systemd, podman, docker, kubernetes, nri,"
            " libvirt; rankfile, openmpi, hydra or slurm; of a job openmpi, seq, slurm, hydra or cray.",
        ),
    ]
    output: Annotated[
        Path | None,
        Option(
            "-o", "--output", writes=True, help="Write to a file, with what a job's line needs beside it."
        ),
    ] = None

    def run(self) -> None:
        from numaplan.common import write_document

        from ..jobs.document import is_job_plan
        from ..plan_file.export import export_plan
        from ..plan_file.plan import Plan

        if is_job_plan(self.plan):
            self._export_job()
            return
        text = export_plan(Plan.load(self.plan), self.form)
        if self.output is None:
            sys.stdout.write(text)
        else:
            write_document(self.output, text.encode())

    def _export_job(self) -> None:
        from numaplan.common import UsageError, check_output, write_document

        from ..jobs.document import JobPlan
        from ..jobs.launchers import export_job

        place = self.output or Path(self.plan.name)
        start = export_job(JobPlan.load(self.plan), self.plan, self.form, place)
        if self.output is None:
            sys.stdout.write(start.script())
            return
        if any(file in (self.output, self.plan) for file, _ in start.files):
            raise UsageError(f"-o {self.output}: the file that the line reads has this name", "give another")
        check_output(self.output)
        for file, _ in start.files:
            check_output(file, [self.plan, self.output])
        for file, text in start.files:
            write_document(file, text.encode())
        write_document(self.output, f"{start.command}\n".encode())
