"""A job's run on a terminal: what each host accessed where, and what hosts sent each other."""

from shlex import join
from typing import TextIO

from numaplan.common import counted, make_console

from .results import ClusterRun

_MOST_HOSTS = 16  # a larger table is for --json


def show_cluster(run: ClusterRun, out: TextIO) -> None:
    """Two tables, then what they come to."""
    from rich.text import Text

    console = make_console(file=out)
    plan = f", placed by {run.job}" if run.job else ""
    console.print(
        Text.assemble(
            "user accesses of ", (join(run.argv), "bold"), f" on {counted(len(run.hosts), 'host')}{plan}"
        ),
        soft_wrap=True,
    )
    console.print(_accesses(run))
    console.print(f"bytes between hosts{'' if len(run.hosts) <= _MOST_HOSTS else ': see --json'}")
    if len(run.hosts) <= _MOST_HOSTS:
        console.print(_bytes(run))
    for line in summary(run):
        console.print(line, soft_wrap=True)


def _accesses(run: ClusterRun) -> object:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("host", "machine"):
        table.add_column(title, no_wrap=True)
    for title in ("accesses", "local", "remote", "local share", *(["predicted"] if run.predicted else [])):
        table.add_column(title, justify="right", no_wrap=True)
    for name, host in list(run.hosts.items())[:_MOST_HOSTS]:
        counts = (f"{value:,}" for value in (host.local + host.remote, host.local, host.remote))
        predicted = [_percent(run.predicted.local_share.get(name, -1.0))] if run.predicted else []
        table.add_row(name, host.machine, *counts, _percent(host.local_share), *predicted)
    if len(run.hosts) > _MOST_HOSTS:
        table.add_row(f"… {len(run.hosts) - _MOST_HOSTS} more")
    return table


def _bytes(run: ClusterRun) -> object:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("from \\ to", no_wrap=True)
    for name in run.hosts:
        table.add_column(name, justify="right", no_wrap=True)
    for name, row in zip(run.hosts, run.bytes, strict=True):
        cells = ("·" if to == name else f"{value:,}" for to, value in zip(run.hosts, row, strict=True))
        table.add_row(name, *cells)
    return table


def summary(run: ClusterRun) -> list[str]:
    """What it comes to, in lines."""
    launcher = sum(map(sum, run.launcher_bytes))
    parts = [f"{run.between_hosts:,} bytes between hosts"]
    if run.predicted and run.predicted.between_hosts >= 0:
        parts.append(f"{run.predicted.between_hosts:,.0f} predicted")
    parts.append(f"{launcher:,} more by the launcher")
    local = f"local share {run.local_share:.1%} of {run.local + run.remote:,}"
    lines = ["; ".join(parts), f"{local}; {run.seconds:.2f} s in the guests"]
    if run.applied is not None:
        odd = [f"{rank}: {report['summary']}" for rank, report in run.applied.items() if not report["ok"]]
        good = len(run.applied) - len(odd)
        lines += [f"{good} of {len(run.applied)} ranks as planned", *odd[:3]]
    return lines


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0 else "–"
