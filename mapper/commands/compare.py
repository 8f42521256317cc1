"""`nmap compare`: every method's costs on one workload, in one table."""

from typing import Annotated

from numaplan.common import Json, Option, print_json

from .workload import MachineName, OneTrace, WorkloadCommand, say


class CompareCommand(WorkloadCommand, frozen=True):
    """Show what every method's placement costs: communication, distance, load, time.

    Example: nmap compare trace.db --machine 4x2
    """

    trace: OneTrace = None
    machine: MachineName = None
    methods: Annotated[str, Option(help="all, or names separated by commas.")] = "all"
    objective: Annotated[str, Option(help="time, balanced, remote, hop, phased or all.")] = "all"
    as_json: Json = False

    def run(self) -> None:
        from ..planning.judge.compare import chosen_methods, compare, to_document
        from ..planning.task import made_on
        from ..threads.problem import check_words

        chosen_methods(self.methods)  # known, before a large trace is read
        check_words("time" if self.objective == "all" else self.objective, self.effort)
        workload, target = self.read_with_machine(
            self.machine, self.trace, pages=self.objective in ("time", "all"), objective=self.objective
        )
        say([*workload.notes, *(workload.not_balanced if self.objective != "time" else ())])
        rows = compare(workload, target, self.methods, self.objective, seed=self.seed, effort=self.effort)
        if self.as_json:
            print_json(to_document(rows))
            return
        from .draw.placement import show_comparison

        show_comparison(rows)
        if workload.counted and made_on(workload, target):
            print(f"as it was recorded {workload.counted.accesses:.1%} of accesses were local (counted)")
