"""A job's plan for hosts that are like this machine."""

from collections.abc import Sequence

from numaplan.machine import Cluster, Host, Machine
from numaplan.mapper import JobPlan, JobRank, Plan, PlanApp, PlanMachine, PlanThread, Predicted

ORDER = ("h2", "h0", "h3", "h0", "h1", "h2")  # as no launcher would place ranks by itself
PATHS = ("0", "0.1", "0.2")


def job_of(
    argv: Sequence[str] = ("./app",), order: Sequence[str] = ORDER, machine: Machine | None = None
) -> JobPlan:
    """Ranks of three threads on these hosts, all like this machine; cpus in an order that nobody inherits."""
    machine = machine or Machine.load("local")
    cpus = machine.cpus
    plans = {}
    for host in sorted(set(order)):
        seats = [
            (f"r{rank}", path, cpus[(rank + number // 2) % len(cpus)])
            for rank, where in enumerate(order)
            if where == host
            for number, path in enumerate(PATHS)
        ]
        plans[host] = Plan(
            app=PlanApp(argv=tuple(argv), threads=len(seats)),
            machine=PlanMachine.of(machine),
            method="compact",
            objective="time",
            threads=tuple(
                PlanThread(
                    path=path,
                    thread=-1,
                    node=machine.node_of_cpu[cpu],
                    cpus=(cpu,),
                    load=1.0,
                    process=process,
                )
                for process, path, cpu in seats
            ),
            predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
        )
    return JobPlan(
        ranks=tuple(JobRank(rank=rank, host=host) for rank, host in enumerate(order)),
        hosts=plans,
        cluster=Cluster(hosts=tuple(Host(name=host, slots=len(order), machine=machine) for host in plans)),
    )
