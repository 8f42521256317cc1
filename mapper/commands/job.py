"""`nmap plan job/`: the plan of a job of many ranks on many hosts."""

from pathlib import Path
from typing import TYPE_CHECKING

from numaplan.common import UsageError, print_lines

from .progress import shown_progress
from .workload import say

if TYPE_CHECKING:
    from ..jobs.document import JobPlan
    from ..planning.options import PlanOptions

SCHEMA = "numaplan/planned-job/1"
MOST_HOSTS = 20  # in a summary


def plan_a_job(
    job: Path, cluster: str, engine: str, output: Path, options: "PlanOptions", *, as_json: bool
) -> None:
    """Plan, write the job.json, and say what it comes to."""
    from numaplan.machine import Cluster

    from ..jobs.planning import plan_job

    if not job.is_dir():
        what = "not the folder of a job" if job.exists() else "no such folder"
        raise UsageError(f"{job}: {what}", "make it with 'nmap reduce', or leave --cluster out")
    hosts = Cluster.load(cluster)
    with shown_progress() as progress:
        planned = plan_job(job.absolute(), hosts, options, engine=engine, progress=progress)
    planned.plan.save(output)
    if as_json:
        import msgspec

        answer = {
            "schema": SCHEMA,
            "output": str(output),
            "ranks": len(planned.plan.ranks),
            "hosts": {name: list(planned.plan.ranks_on(name)) for name in planned.plan.hosts},
            "predicted": planned.plan.predicted,
            "notes": planned.notes,
        }
        print(msgspec.json.encode(answer).decode())
        return
    say(planned.notes)
    print_lines(*job_lines(planned.plan), *_by_host(planned.plan), f"plan written to {output}")


def job_lines(job: "JobPlan") -> list[str]:
    """What a job's plan comes to, for people."""
    found = job.predicted
    ranks = len(job.ranks)
    lines = [f"{ranks} rank{'s' * (ranks != 1)} on {len(job.hosts)} of {len(job.cluster.hosts)} hosts"]
    if found.message_bytes < 0:
        lines.append("bytes between hosts   not known: messages were not recorded")
    else:
        beside = ", ".join(
            f"{name} {_share(size, found.message_bytes)}" for name, size in found.baselines.items()
        )
        shown = _share(found.between_hosts, found.message_bytes)
        lines.append(f"bytes between hosts   {shown} of {_bytes(found.message_bytes)}   ({beside})")
    local = [share for share in found.local_share.values() if share >= 0]
    if local:
        lines.append(f"local memory accesses {sum(local) / len(local):.1%}   (worst host {min(local):.1%})")
    return lines


def _by_host(job: "JobPlan") -> list[str]:
    """The ranks of each host, as far as they fit on a screen."""
    from numaplan.machine import format_list

    ranks: dict[str, list[int]] = {}
    for one in job.ranks:
        ranks.setdefault(one.host, []).append(one.rank)
    lines = []
    named = [host.name for host in job.cluster.hosts if host.name in ranks]
    for name in named[:MOST_HOSTS]:
        alone = job.hosts[name].alone if name in job.hosts else ""
        lines.append(f"  {name}: ranks {format_list(ranks[name])}{'   (left alone inside)' * bool(alone)}")
    if len(named) > MOST_HOSTS:
        lines.append(f"  … and {len(named) - MOST_HOSTS} more hosts ('nmap show' has all)")
    return lines


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole > 0 else "0.0%"


def _bytes(count: float) -> str:
    from numaplan.analyzer import in_bytes

    return in_bytes(round(count))
