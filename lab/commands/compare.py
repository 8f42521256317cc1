"""`nlab compare`: run a program under several configurations and show their costs side by side."""

import sys
from typing import Annotated

from numaplan.common import Command, Json, Option, write_document

from .run import CpusPerNode, MachineName, Memory, Program, Scale, Timeout, check_outputs, print_json


class CompareCommand(Command, frozen=True):
    """Run a program under several configurations in one boot and show their costs side by side.

    Configurations: default (the kernel places all, AutoNUMA on), no-autonuma, interleave, compact and
    scatter (threads bound in order), plan (nlaunch --plan), online (nlaunch --online). The program's own
    output is dropped.

    A gate compares medians: local_share, local, remote, hop_cost, mean_distance, traffic_imbalance, migrated,
    hint_faults, seconds.

    Example: nlab compare --machine 4x2 --plan plan.json --gate 'plan.remote <= 0.5 * default.remote' -- ./app
    """

    argv: Program
    machine: MachineName
    configs: Annotated[str, Option(help="Which, separated by commas.", metavar="NAMES")] = ""
    plan: Annotated[str, Option(help="The plan of configuration 'plan'.", metavar="PLAN.JSON")] = ""
    online: Annotated[str, Option(help="The policy of configuration 'online'.", metavar="POLICY")] = ""
    repeat: Annotated[int, Option(help="Runs a configuration.", metavar="RUNS", least=1, most=100)] = 3
    scale: Scale = ""
    cpus_per_node: CpusPerNode = 0
    memory: Memory = ""
    timeout: Timeout = 0
    gate: Annotated[list[str], Option(help="Exit 1 unless this holds.", metavar="EXPR")] = []
    junit: Annotated[str, Option(help="Write the verdict for CI.", metavar="OUT.XML")] = ""
    html: Annotated[str, Option(help="Write a page with the table and maps.", metavar="OUT.HTML")] = ""
    as_json: Json = False

    def run(self) -> None:
        from ..runs import comparing
        from ..runs.export import html as html_page, junit as junit_suite
        from ..runs.session import Request
        from ..runs.tables import say, show_compare

        check_outputs(self.junit, self.html)
        request = Request(
            self.argv,
            self.machine,
            self.scale,
            self.cpus_per_node,
            self.memory,
            self.timeout,
            self.plan,
            self.online,
        )
        result, verdicts = comparing.compare(request, self.configs, self.repeat, self.gate, say)
        if self.as_json:
            print_json(result)
        else:
            show_compare(result, sys.stdout)
        if self.junit:
            write_document(self.junit, junit_suite(result, verdicts))
        if self.html:
            write_document(self.html, html_page(result, verdicts))
        comparing.raise_for(result, verdicts)
