"""The plan of a job drawn on a terminal: its hosts, and which ranks each of them has."""

from rich.table import Table

from numaplan.common import make_console
from numaplan.machine import format_list

from ...jobs.document import JobPlan
from ..job import job_lines

MOST_HOSTS = 1000


def show_job(job: JobPlan) -> None:
    """What it comes to, then a line for each host."""
    console = make_console()
    console.print("\n".join(job_lines(job)), soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for name in ("host", "machine", "slots", "ranks", "local", "which"):
        right = name in ("slots", "ranks", "local")
        table.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=right)
    ranks: dict[str, list[int]] = {}
    for one in job.ranks:
        ranks.setdefault(one.host, []).append(one.rank)
    for host in job.cluster.hosts[:MOST_HOSTS]:
        own = ranks.get(host.name, [])
        share = job.predicted.local_share.get(host.name, -1.0)
        local = f"{share:.1%}" if share >= 0 else "–"
        listed = format_list(own) if own else "none"
        table.add_row(
            *(host.name, host.machine.name or "machine", str(host.slots), str(len(own)), local, listed)
        )
    if len(job.cluster.hosts) > MOST_HOSTS:
        table.add_row(f"… {len(job.cluster.hosts) - MOST_HOSTS} more")
    console.print(table)
    console.print("a host's own plan: nmap show JOB --host HOST", style="dim")
