"""`nmap compare`: every method's costs on one workload, in one table."""

from typing import Annotated

from numaplan.common import Command, Json, Option

from .plan import Comm, Effort, Loads, MachineName, OneTrace, Phases, Seed, Symmetrise


class CompareCommand(Command, frozen=True):
    """Show what every method's placement costs: communication, distance, load, time.

    Example: nmap compare trace.db --machine 4x2
    """

    trace: OneTrace = None
    comm: Comm = None
    loads: Loads = None
    machine: MachineName = None
    phases: Phases = None
    symmetrise: Symmetrise = False
    methods: Annotated[str, Option(help="all, or names separated by commas.")] = "all"
    objective: Annotated[str, Option(help="balanced, remote, hop, phased or all.")] = "all"
    seed: Seed = 0
    effort: Effort = "normal"
    as_json: Json = False

    def run(self) -> None:
        from ..planning.compare import chosen_methods, compare, to_document
        from ..workload.inputs import read_input, say

        chosen_methods(self.methods)  # known, before a large trace is read
        workload, target = read_input(
            [self.trace] if self.trace else None,
            self.comm,
            self.loads,
            self.machine,
            pages=False,
            phases=self.phases,
            by_phase=self.objective == "phased",
            symmetrise=self.symmetrise,
        )
        for note in workload.notes:
            say(note)
        rows = compare(workload, target, self.methods, self.objective, seed=self.seed, effort=self.effort)
        if self.as_json:
            print(to_document(rows))
            return
        from .draw import show_comparison

        show_comparison(rows)
