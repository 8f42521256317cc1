"""The sum of a job's reports in a few lines, also of thousands of ranks."""

from collections.abc import Sequence

from numaplan.analyzer import in_bytes
from numaplan.machine import format_list

from ...jobs.reports import HostShare, JobReport

MOST_HOSTS = 16
MOST_RANKS = 20  # odd ones, by name
LONGEST = 60  # characters of a list of ranks


def report_lines(report: JobReport) -> list[str]:
    """Lines for a terminal."""
    lines = [_total(report)]
    if report.unplanned:
        lines.append(f"{report.unplanned:,} threads are not in the plan (MPI's own, often)")
    if report.silent:
        ranks = format_list(report.silent)
        ranks = ranks if len(ranks) <= LONGEST else f"{ranks[:LONGEST].rpartition(',')[0]}, …"
        lines.append(f"no report of {len(report.silent):,} of {report.ranks:,} ranks: {ranks}")
    if report.other_files:
        lines.append(f"left out, as not of this run: {_some(report.other_files)}")
    lines += ["", *_hosts(report.hosts)]
    if report.odd:
        lines += ["", "not as planned:"]
        lines += [
            f"  rank {one.rank} on {one.host}: {'; '.join(one.what)}" for one in report.odd[:MOST_RANKS]
        ]
    if len(report.odd) > MOST_RANKS:
        lines.append(f"  … and {len(report.odd) - MOST_RANKS:,} more ranks (--json has all)")
    return lines


def _total(report: JobReport) -> str:
    total = report.total
    text = f"{total.ranks_as_planned:,} of {report.ranks:,} ranks on their hosts"
    text += f", {total.threads_as_planned:,} of {total.threads:,} threads on their cpus"
    return f"{text}, {_memory(total)}" if total.touched else text


def _memory(share: HostShare) -> str:
    """Rounded down: not all is never 100 %."""
    if not share.touched:
        return ""
    permille = 1000 * (share.touched - share.misplaced) // share.touched
    return f"{permille / 10:g} % of {in_bytes(share.touched)} on their nodes"


def _hosts(hosts: Sequence[HostShare]) -> list[str]:
    """A line a host; of many, those that are not as planned first."""
    shown = hosts
    if len(hosts) > MOST_HOSTS:
        shown = sorted(hosts, key=lambda host: host.as_planned)[:MOST_HOSTS]
    rows = [("host", "ranks", "threads", "memory" if any(host.touched for host in hosts) else "")]
    rows += [
        (
            host.host,
            f"{host.ranks_as_planned}/{host.ranks}",
            f"{host.threads_as_planned}/{host.threads}",
            _memory(host),
        )
        for host in shown
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip()
        for row in rows
    ]
    if left := len(hosts) - len(shown):
        odd = sum(not host.as_planned for host in hosts) - sum(not host.as_planned for host in shown)
        lines.append(f"… and {left:,} more hosts, {f'{odd:,} of them not' if odd else 'all'} as planned")
    return lines


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
