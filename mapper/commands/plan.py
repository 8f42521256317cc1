"""`nmap plan`: a plan for the threads and the memory of a recorded program."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from numaplan.common import (
    Argument,
    Json,
    Option,
    UsageError,
    check_named_once,
    check_own_files,
    print_json,
    print_lines,
)

from .reduce import Engine
from .workload import MachineName, WorkloadCommand, say

if TYPE_CHECKING:
    from numaplan.machine import Machine

    from ..workload.opening import TraceOpening
    from ..workload.workload import Workload

_OF_ONE_HOST = (
    *("machine", "comm", "loads", "phases", "symmetrise", "start", "end", "phase"),
    *("nodes", "without_cpus", "beside", "pin", "threads", "force"),
)


class PlanCommand(WorkloadCommand, frozen=True):
    """Plan where the threads and the memory of a recorded program should live.

    Several runs of one program are averaged. The plan says whether threads keep their roles from run to run;
    if they do not, a plan of one run does not fit the next.

    A job of many ranks is planned from the folder that 'nprof record --reduce' or 'nmap reduce' made: first
    which rank runs on which host of --cluster, then each host.

    Example: nmap plan trace.db --machine 4x2 -o plan.json
    """

    traces: Annotated[
        list[Path],
        Argument("TRACE", help="Traces: several runs, or a job's ranks; with --cluster a job's folder."),
    ] = []
    machine: MachineName = None
    method: Annotated[str, Option(help="A method of 'nmap compare'.")] = "best"
    objective: Annotated[
        str,
        Option(
            help="time (the least expected cost; usual for traces), balanced (for matrices), remote, hop or"
            " phased (balanced in every phase)."
        ),
    ] = ""
    cluster: Annotated[
        str, Option(reads=True, help="The hosts of a job: a cluster.json, or words such as 4*2x8.")
    ] = ""
    engine: Engine = "local"
    output: Annotated[
        Path | None,
        Option(
            "-o", "--output", writes=True, help="The plan to write [default: plan.json, of a job job.json]."
        ),
    ] = None
    tolerance: Annotated[
        float, Option(help="How far a node's load may be off its share (objective balanced, phased).")
    ] = 0.05
    nodes: Annotated[str, Option(help="Use only these nodes, such as 0,2.")] = ""
    smt: Annotated[str, Option(help="share: use all hwthreads; avoid: one per core.")] = "share"
    without_cpus: Annotated[
        str, Option(help="Keep these cpus free for others, such as 0,4-7.", metavar="CPUS")
    ] = ""
    beside: Annotated[
        list[Path], Option(metavar="PLAN", help="Keep the cpus of another program's plan free.")
    ] = []
    pin: Annotated[
        list[str],
        Option(
            metavar="THREAD=NODE",
            reads=True,
            help="Thread 0.3 on node 1: 0.3=1; on a cpu: 0.3=cpu:5; @FILE: read pins from a file.",
        ),
    ] = []
    next_touch: Annotated[
        bool, Option(help="Let memory whose users change between phases move with them.")
    ] = False
    place_all: Annotated[
        bool, Option(help="Place also memory that is as good where it is touched first.")
    ] = False
    threads: Annotated[
        int | None,
        Option(metavar="N", help="For N threads, by recordings with two or more other numbers of them."),
    ] = None
    force: Annotated[
        bool, Option(help="With --threads, also by a pattern that predicts the recordings badly.")
    ] = False
    as_json: Json = False

    def run(self) -> None:
        from ..workload.opening import TraceOpening

        if self.cluster:
            self._plan_job()
        elif any(trace.is_dir() for trace in self.traces):
            raise UsageError("the folder of a job needs --cluster", "describe its hosts, such as '4*2x8'")
        elif not self.traces or self.comm is not None:
            self._plan(None)
        else:
            check_named_once(self.traces)  # else a run would be taken to be like itself
            with TraceOpening(self.traces[0]) as opening:
                self.refuse_options_of_a_matrix()
                self._plan(opening)

    def _plan(self, opening: "TraceOpening | None") -> None:
        from ..plan_file.summary import summary
        from ..planning.options import PlanOptions
        from ..planning.planner import answer, make_plan
        from ..threads.methods import find_method
        from ..threads.pins import read_pins
        from ..threads.problem import check_words

        output = self._output("plan.json")
        find_method(self.method)  # now rather than when a large trace has been read
        check_words(self.objective or "time", self.effort)
        workload, target = self._workload(opening)
        options = PlanOptions(
            method=self.method,
            objective=self.objective,
            effort=self.effort,
            seed=self.seed,
            tolerance=self.tolerance,
            nodes=_node_list(self.nodes),
            smt=self.smt,
            without_cpus=_kept_free(self.without_cpus, self.beside, target),
            pins=read_pins(self.pin),
            next_touch=self.next_touch,
            place_all=self.place_all,
        )
        planned = make_plan(workload, target, options)
        planned.plan.save(output)
        if self.as_json:
            print_json(answer(planned, output))
            return
        say(planned.notes)
        print_lines(*summary(planned.plan, output, planned.larger))

    def _output(self, usual: str) -> Path:
        if self.output is None:
            check_own_files(self, usual)
        return self.output or Path(usual)

    def _plan_job(self) -> None:
        from ..planning.options import PlanOptions
        from .job import plan_a_job

        usual = PlanCommand()
        for name in _OF_ONE_HOST:
            if getattr(self, name) != getattr(usual, name):
                option = {"start": "from", "end": "to"}.get(name, name)
                raise UsageError(f"--{option} with --cluster", "it is of one machine or trace")
        if len(self.traces) != 1:
            raise UsageError("--cluster goes with one folder", "name the folder of the job's parts")
        options = PlanOptions(
            method=self.method,
            objective=self.objective,
            effort=self.effort,
            seed=self.seed,
            tolerance=self.tolerance,
            smt=self.smt,
            next_touch=self.next_touch,
            place_all=self.place_all,
        )
        output = self._output("job.json")
        plan_a_job(self.traces[0], self.cluster, self.engine, output, options, as_json=self.as_json)

    def _workload(self, opening: "TraceOpening | None") -> "tuple[Workload, Machine]":
        if self.threads is None:
            if self.force:
                raise UsageError("--force without --threads", "give both, or neither")
            return self.read_with_machine(
                self.machine,
                *self.traces,
                objective=self.objective,
                opening=opening,
                larger=self.objective in ("", "time"),
            )
        from numaplan.profiler import machine_named

        from ..scaling.scaled import scaled_workload

        if opening is None:
            raise UsageError(
                "--threads goes with traces", "name recordings with two or more numbers of threads"
            )
        target = machine_named(self.machine, os.environ) if self.machine else None
        workload = scaled_workload(self.traces, self.threads, force=self.force, part=self.part)
        target = target or workload.machine
        assert target is not None
        return workload, target


def _kept_free(cpus: str, plans: Sequence[Path], machine: "Machine") -> tuple[int, ...]:
    """The cpus to keep free: those named, and those of other plans for the same machine."""
    from numaplan.machine import parse_list

    from ..plan_file.plan import Plan

    free = set(parse_list(cpus, f"--without-cpus {cpus}"))
    for path in plans:
        plan = Plan.load(path)
        if plan.machine.fingerprint != machine.fingerprint:
            raise UsageError(
                f"{path} was made for another machine ({plan.machine.name or 'unnamed'},"
                f" not {machine.name or 'this one'})",
                "make a plan for this one",
            )
        free |= {cpu for thread in plan.threads for cpu in thread.cpus}
    return tuple(sorted(free))


def _node_list(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise UsageError(f"--nodes {text}", "give node ids separated by commas, such as 0,2") from None
