"""`nmap reduce`: the parts of a job's ranks, out of their traces."""

from pathlib import Path
from typing import Annotated

from numaplan.common import Argument, Command, Json, Option, UsageError, print_lines

from .progress import shown_progress

Engine = Annotated[
    str,
    Option(
        metavar="ENGINE",
        help="Who does it: local:N (processes here), dask:ADDRESS, dask:SCHEDULER_FILE or mpi.",
    ),
]
_ONE_RUN = "give one run of the job"


class ReduceCommand(Command, frozen=True):
    """Reduce traces of a job's ranks to what a plan of the job needs: a folder rank=N of Parquet for each.

    'nprof record --reduce -o job/' does it for each rank where it runs.

    Example: nmap reduce trace.r*.db -o job/ && nmap plan job/ --cluster '4*2x8'
    """

    traces: Annotated[list[Path], Argument("TRACE", help="Traces of a job's ranks.")]
    output: Annotated[
        Path, Option("-o", "--output", metavar="DIR", help="The folder of the job, made if need be.")
    ] = Path("job")
    engine: Engine = "local"
    as_json: Json = False

    def run(self) -> None:
        from functools import partial

        from numaplan.common import print_json, run_all

        from ..jobs.reducing import reduce_trace
        from ..workload.one_job import check_one_job

        if not self.traces:
            raise UsageError("no trace given", "name the traces of a job's ranks")
        job = self.output.absolute()
        with shown_progress() as progress:
            found = run_all(
                self.engine,
                partial(reduce_trace, job=job),
                [trace.absolute() for trace in self.traces],
                lambda done: progress("reducing traces", done / len(self.traces)),
            )
        of: dict[int, Path] = {}
        for trace, parts in zip(self.traces, found, strict=True):
            for rank in (part.rank for part in parts):
                if rank in of:
                    raise UsageError(f"rank {rank} is in {of[rank]} and in {trace}", _ONE_RUN)
                of[rank] = trace
        check_one_job((part.membership for parts in found for part in parts), _ONE_RUN)
        if self.as_json:
            import msgspec

            answer = {"schema": "numaplan/reduced/1", "output": str(self.output), "ranks": sorted(of)}
            print_json(msgspec.json.encode(answer))
            return
        count = len(of)
        print_lines(f"parts of {count} rank{'s' * (count != 1)} written to {self.output}")
