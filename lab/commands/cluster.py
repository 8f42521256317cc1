"""`nlab cluster`: run an MPI job on virtual machines and count what it does, and what goes between."""

import sys
from typing import TYPE_CHECKING, Annotated

from numaplan.common import (
    Argument,
    Command,
    Json,
    Option,
    UsageError,
    check_output,
    check_own_files,
    errors_in_junit,
    make_folder,
    reviewable_json,
    write_document,
)

from .guest import print_result

if TYPE_CHECKING:
    from ..cluster.results import ClusterRun
    from ..runs.gate import Verdict


class ClusterCommand(Command, frozen=True):
    """Run an MPI job on hosts that are virtual machines, and count its accesses and the bytes between them.

    The launcher (mpirun of Open MPI or MPICH) starts on the first host and finds the others by itself. With
    --job ranks run on the hosts that the plan has them on, their threads and memory placed. Give MPICH 4.0 a
    --timeout: most of its jobs wait for ever in MPI_Finalize where their ranks talk by TCP, as here.

    The program's output, input and exit code are its own (124 when --timeout ended it); the tables go to
    stderr. With --json the program's output goes to stderr.

    Example: nlab cluster --hosts 2 --machine 2x2 -- mpirun -n 4 ./app
    """

    argv: Annotated[list[str], Argument("MPIRUN", help="The launcher and its arguments.", program=True)]
    hosts: Annotated[int | None, Option(help="How many (default 2).", least=1, most=64)] = None
    machine: Annotated[
        str, Option("--machine", "-m", reads=True, help="Of each host: AxB, a built-in name, or a file.")
    ] = ""
    cluster: Annotated[
        str, Option(help="Hosts and their machines, of 'nmap cluster'.", metavar="CLUSTER.JSON", reads=True)
    ] = ""
    job: Annotated[
        str, Option(help="Place ranks, threads and memory by this plan.", metavar="JOB.JSON", reads=True)
    ] = ""
    slots: Annotated[
        int | None,
        Option(
            help="Ranks that fit on a host (default: as many as cpus); not with --job.", least=1, most=4096
        ),
    ] = None
    memory: Annotated[str, Option(help="Memory of each host (default 2G).", metavar="SIZE")] = ""
    timeout: Annotated[
        float, Option(help="Seconds the run may take (0: no limit).", metavar="SECONDS", least=0)
    ] = 0
    cache: Annotated[bool, Option(help="Model the caches, as 'nlab run --cache' (for --json).")] = False
    min_local: Annotated[str, Option(help="Exit 1 if fewer accesses are local.", metavar="PERCENT")] = ""
    max_between_hosts: Annotated[
        str, Option(help="Exit 1 if more bytes go between hosts.", metavar="SIZE")
    ] = ""
    junit: Annotated[str, Option(help="Write the verdict for CI.", metavar="OUT.XML", writes=True)] = ""
    report: Annotated[
        str, Option(help="With --job: write what was applied in each rank here.", metavar="FOLDER")
    ] = ""
    as_json: Json = False

    def run(self) -> int:
        from ..cluster.gates import cluster_junit, problem, raise_for
        from ..cluster.tables import show_cluster

        with errors_in_junit(self.junit, "nlab cluster", "nlab.run", in_suites=True):
            result, verdicts = self._run()
        if self.as_json:
            print_result(result)
        else:
            show_cluster(result, sys.stderr)
        for rank, report in (result.applied or {}).items() if self.report else ():
            write_document(f"{self.report}/{rank}.json", reviewable_json(report))
        if self.junit:
            write_document(self.junit, cluster_junit(result, verdicts))
        if result.timed_out:
            print(f"nlab: the program was ended after {self.timeout:g} s", file=sys.stderr)
        if not result.exit_code:
            raise_for(verdicts)
        elif verdicts:
            print(f"nlab: {problem(result)}: gates do not count", file=sys.stderr)
        return result.exit_code

    def _run(self) -> "tuple[ClusterRun, list[Verdict]]":
        from numaplan.mapper import JobPlan

        from ..cluster.gates import Gates
        from ..cluster.hosts import guest_shapes, wanted_hosts
        from ..cluster.ranks import starting_ranks
        from ..cluster.session import ClusterRequest, open_cluster
        from ..guest.streams import own_stdin
        from ..runs.tables import say

        gates = Gates(self.min_local, self.max_between_hosts)
        if self.report and not self.job:
            raise UsageError("--report: without a plan nothing is applied", "add --job JOB.JSON")
        if self.report:
            make_folder(self.report)
        for path in filter(None, (self.junit, self.report and f"{self.report}/r0.json")):
            check_output(path)
        plan = JobPlan.load(self.job) if self.job else None
        for one in plan.ranks if plan and self.report else ():
            check_own_files(self, f"{self.report}/r{one.rank}.json")
        if plan:
            starting_ranks(plan, self.argv)
        hosts = wanted_hosts(self.hosts or 0, self.machine, self.cluster, plan, self.slots or 0)
        shapes = guest_shapes(hosts, self.memory)
        request = ClusterRequest(self.argv, hosts, shapes, self.timeout, self.cache)
        sys.stdout.flush()
        with open_cluster(request, say) as session:
            result = session.run(plan, own_stdin(), 2 if self.as_json else 1, 2)
        result.job = self.job
        return result, gates.check(result)
