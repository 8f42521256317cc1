"""What the ranks of a job reported, summed up: how much of it is where the plan has it, and who is not."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from numaplan.common import BAD_JSON, UsageError, read_document

SCHEMA = "numaplan/job-report/1"
APPLIED = "numaplan/applied/1"  # of nlaunch
GOOD_SHARE = 0.99  # of a rank's touched bytes on their nodes
NAMED = 3  # threads of a rank


class AppliedRank(msgspec.Struct, frozen=True, kw_only=True):
    """Which rank of which job this is.

    host: where it runs; planned: the host whose plan it has, empty for a rank that is not in it; remapped:
    whether it stands for another host or rank of the plan; ranks: of the job as it was started, 0: not known;
    planned_ranks: of the job in the plan; job: its launcher's name for it.
    """

    rank: int
    host: str
    planned: str
    remapped: bool = False
    ranks: int = 0
    planned_ranks: int = 0
    job: str = ""

    @property
    def as_planned(self) -> bool:
        """Whether it runs where it is planned."""
        return bool(self.planned) and (self.remapped or self.planned == self.host)

    @property
    def run(self) -> tuple[str, int, int]:
        """What the reports of one run have in common."""
        return self.job, self.ranks, self.planned_ranks


class _Thread(msgspec.Struct, frozen=True):
    path: str
    planned: tuple[int, ...]
    applied: tuple[int, ...]
    process: str = "p0"


class _Region(msgspec.Struct, frozen=True):
    actual: dict[str, int]
    misplaced: int


class _Report(msgspec.Struct, frozen=True):
    schema: str
    exit_code: int
    threads: tuple[_Thread, ...]
    memory: tuple[_Region, ...]
    unplanned_count: int
    reasons: tuple[str, ...]
    rank: AppliedRank


class OddRank(msgspec.Struct, frozen=True):
    """A rank that is not as planned, or failed; what: why, in words."""

    rank: int
    host: str
    what: tuple[str, ...]


class HostShare(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks and threads that reported from a host, those of them that are where the plan has them, bytes that
    were touched of planned memory, and those of them on other nodes."""

    host: str
    ranks: int = 0
    ranks_as_planned: int = 0
    threads: int = 0
    threads_as_planned: int = 0
    touched: int = 0
    misplaced: int = 0

    @property
    def as_planned(self) -> bool:
        """Whether all of it is."""
        well_placed = self.misplaced <= (1 - GOOD_SHARE) * self.touched
        return (self.ranks, self.threads) == (self.ranks_as_planned, self.threads_as_planned) and well_placed


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of a job's reports.

    total: of all hosts; ranks: how many the job had; silent: those without a report; unplanned: threads that
    the plan does not have; odd: in order; other_files: what lies there beside the reports of the last run.
    """

    schema: str = SCHEMA
    ok: bool
    ranks: int
    total: HostShare
    unplanned: int
    silent: tuple[int, ...]
    odd: tuple[OddRank, ...]
    hosts: tuple[HostShare, ...]
    other_files: tuple[str, ...]


class _File(NamedTuple):
    name: str
    changed: int
    report: _Report


def read_reports(folder: Path) -> JobReport:
    """The sum of the reports in a folder; raises UsageError where there are none."""
    files, others = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            report = msgspec.json.decode(read_document(path, "report"), type=_Report)
            if report.schema == APPLIED:
                files.append(_File(path.name, path.stat().st_mtime_ns, report))
                continue
        except (*BAD_JSON, UsageError, OSError):
            pass
        others.append(path.name)
    if not files:
        raise UsageError(
            f"{folder}: no reports", "give the folder of 'nlaunch --job JOB.JSON --report FOLDER'"
        )
    run = max(files, key=lambda file: file.changed).report.rank.run
    others += [file.name for file in files if file.report.rank.run != run]
    return sum_reports([file.report for file in files if file.report.rank.run == run], others)


def sum_reports(reports: Sequence[_Report], other_files: Iterable[str] = ()) -> JobReport:
    """The sum of the reports of one run."""
    _, started, planned = reports[0].rank.run
    known = {report.rank.rank: report for report in reports}
    ranks = max(started or planned, max(known) + 1)
    silent = tuple(rank for rank in range(ranks) if rank not in known)
    odd = tuple(
        OddRank(rank, report.rank.host, what)
        for rank, report in sorted(known.items())
        if (what := _odd(report))
    )
    hosts: dict[str, HostShare] = {}
    for report in known.values():
        share = hosts.get(report.rank.host, HostShare(host=report.rank.host))
        hosts[report.rank.host] = _added(share, _share(report))
    total = HostShare(host="")
    for share in hosts.values():
        total = _added(total, share)
    return JobReport(
        ok=not odd and not silent,
        ranks=ranks,
        total=total,
        unplanned=sum(report.unplanned_count for report in known.values()),
        silent=silent,
        odd=odd,
        hosts=tuple(hosts[name] for name in sorted(hosts, key=_by_number)),
        other_files=tuple(sorted(other_files)),
    )


def _by_number(host: str) -> tuple[str, int, str]:
    """n2 before n10."""
    stem = host.rstrip("0123456789")
    number = host[len(stem) :]
    return stem, int(number) if number else -1, host


def _share(report: _Report) -> HostShare:
    return HostShare(
        host=report.rank.host,
        ranks=1,
        ranks_as_planned=int(report.rank.as_planned),
        threads=len(report.threads),
        threads_as_planned=sum(set(thread.planned) == set(thread.applied) for thread in report.threads),
        touched=sum(sum(region.actual.values()) for region in report.memory),
        misplaced=sum(region.misplaced for region in report.memory),
    )


def _added(one: HostShare, other: HostShare) -> HostShare:
    both = {
        name: getattr(one, name) + getattr(other, name)
        for name in HostShare.__struct_fields__
        if name != "host"
    }
    return HostShare(host=one.host, **both)


def _odd(report: _Report) -> tuple[str, ...]:
    """What is not as planned in a rank; threads that the plan does not have are no fault of the rank."""
    share, what = _share(report), []
    if not report.rank.as_planned:
        planned = report.rank.planned
        what.append(f"planned on {planned}" if planned else "not in the plan")
    elsewhere = [
        f"{thread.process}/{thread.path}"
        for thread in report.threads
        if set(thread.planned) != set(thread.applied)
    ]
    if elsewhere:
        names = ", ".join(elsewhere[:NAMED]) + (", …" if len(elsewhere) > NAMED else "")
        what.append(f"{len(elsewhere)} of {share.threads} threads not on their cpus ({names})")
    if share.misplaced > (1 - GOOD_SHARE) * share.touched:
        what.append(f"{share.misplaced / share.touched:.1%} of its memory on other nodes")
    if report.exit_code:
        what.append(f"exit code {report.exit_code}")
    if elsewhere and report.reasons:
        what.append(report.reasons[0])
    return tuple(what)
