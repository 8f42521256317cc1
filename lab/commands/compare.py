"""`nlab compare`: run a program under several configurations and show their costs side by side."""

import sys
from dataclasses import replace
from typing import Annotated

from numaplan.common import Option, check_output, errors_in_junit, write_document

from .guest import GuestCommand, print_result


class CompareCommand(GuestCommand, frozen=True):
    """Run a program under several configurations in one boot and show their costs side by side.

    Configurations: default (the kernel places everything, AutoNUMA on), no-autonuma, interleave, compact and
    scatter (threads bound in order), plan (nlaunch --plan), online (nlaunch --online). The program's own
    output is dropped.

    A gate compares medians: local_share, local, remote, hop_cost, mean_distance, traffic_imbalance, migrated,
    hint_faults, seconds; but for --no-cache also cost (in ns), memory_local_share, memory_imbalance,
    lines_between_nodes, busiest_cpu.

    Example: nlab compare --machine 4x2 --plan plan.json --gate 'plan.cost <= 0.9 * default.cost' -- ./app
    """

    cache: Annotated[
        bool,
        Option(
            "--cache",
            off="--no-cache",
            help="Model the caches: count what reaches memory and moves between cpus, and what it costs. "
            "Without, a run takes a third to two thirds of the time.",
        ),
    ] = True
    configs: Annotated[str, Option(help="Configurations, separated by commas.", metavar="NAMES")] = ""
    repeat: Annotated[int, Option(help="Runs of each configuration.", metavar="RUNS", least=1, most=100)] = 3
    exit_code: Annotated[
        int, Option(help="The program's exit code when all is well.", metavar="CODE", least=0, most=255)
    ] = 0
    gate: Annotated[list[str], Option(help="Exit 1 unless this holds.", metavar="EXPR")] = []
    junit: Annotated[str, Option(help="Write the verdict for CI.", metavar="OUT.XML", writes=True)] = ""
    html: Annotated[
        str, Option(help="Write a page with the table and maps.", metavar="OUT.HTML", writes=True)
    ] = ""

    def run(self) -> None:
        from ..runs import comparing
        from ..runs.export import html as html_page, junit as junit_suite
        from ..runs.tables import say, show_compare

        for path in filter(None, (self.junit, self.html)):
            check_output(path)
        with errors_in_junit(self.junit, "nlab compare", "nlab.run", in_suites=True):
            request = replace(self.request(), well=self.exit_code)
            result, verdicts = comparing.compare(request, self.configs, self.repeat, self.gate, say)
        if self.as_json:
            print_result(result)
        else:
            show_compare(result, sys.stdout)
        if self.junit:
            write_document(self.junit, junit_suite(result, verdicts))
        if self.html:
            write_document(self.html, html_page(result, verdicts))
        comparing.raise_for(result, verdicts)
