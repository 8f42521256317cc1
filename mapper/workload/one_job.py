"""Whether ranks are of one job: what is planned of the ranks of two, side by side, is of use to neither."""

from collections.abc import Iterable, Mapping

import msgspec

from numaplan.common import UsageError

_MOST_DIGITS = 8


class Membership(msgspec.Struct, frozen=True):
    """What a recording says of the job that it is of.

    name: of the recording, for people; processes: the ranks (`r3`) that it has; ranks: the job's size, 0: not
    known; job: its launcher's name for it, empty: not known.
    """

    name: str
    processes: tuple[str, ...]
    ranks: int = 0
    job: str = ""


def size_of_job(meta: Mapping[str, str]) -> int:
    """The number of ranks that a trace's `meta` tells, 0: none."""
    ranks = meta.get("ranks", "")
    return int(ranks) if ranks.isdecimal() and len(ranks) <= _MOST_DIGITS else 0


def membership(name: str, processes: Iterable[str], meta: Mapping[str, str]) -> Membership:
    """Of a trace with these processes."""
    roots = dict.fromkeys(process.partition(".")[0] for process in processes)
    return Membership(name, tuple(roots), size_of_job(meta), meta.get("job", ""))


def check_one_job(members: Iterable[Membership], hint: str) -> None:
    """Raise UsageError naming two recordings of different jobs.

    Ranks may have been recorded in several runs, each a job of its own: then one job must have them all.
    """
    sized: Membership | None = None
    named: list[Membership] = []
    jobs: dict[str, set[str]] = {}
    for one in members:
        sized = sized or (one if one.ranks else None)
        if sized and one.ranks and one.ranks != sized.ranks:
            what = f"{one.name} is of a job of {one.ranks} ranks, {sized.name} of one of {sized.ranks}"
            raise UsageError(what, hint)
        if one.job:
            named.append(one)
            for process in one.processes:
                jobs.setdefault(process, set()).add(one.job)
    if jobs and not set.intersection(*jobs.values()):
        first, other = named[0], next(one for one in named if one.job != named[0].job)
        raise UsageError(f"{other.name} is of job {other.job}, {first.name} of job {first.job}", hint)
