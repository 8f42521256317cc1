"""Ranks that start as a job's plan has them: what nlaunch does before and after each, done on this side."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numaplan.common import UsageError
from numaplan.launcher import PlannedStart, planned_rank
from numaplan.machine import Host
from numaplan.mapper import AppliedRank, JobPlan

from ..places import open_to_users
from ..runs.configs import PlannedLaunch

STARTER = "nlab-rank"


class PlannedRanks:
    """The ranks of a job, prepared in a folder that nlab-rank reads."""

    def __init__(
        self, job: JobPlan, hosts: Sequence[Host], program: str, environment: Mapping[str, str], folder: Path
    ) -> None:
        self._job = job
        self._folder = folder
        machines = {host.name: host.machine for host in hosts}
        self._launches: dict[int, PlannedLaunch] = {}
        for one in job.ranks:
            own = folder / f"log{one.rank}"
            own.mkdir()
            machine = machines[one.host]
            plan = planned_rank(job, one.rank, machine)
            launch = PlannedLaunch(plan, program, machine, environment, own, f"r{one.rank}")
            open_to_users(own)
            self._launches[one.rank] = launch
            data = rank_file(one.host, launch.start, launch.first, environment)
            (folder / f"r{one.rank}").write_bytes(data)

    def reports(self, exit_code: int) -> dict[str, dict[str, Any]]:
        """What was applied (`numaplan/applied/1`), by rank."""
        return {
            f"r{rank}": launch.report(
                exit_code,
                AppliedRank(
                    rank=rank,
                    host=self._job.host_of[rank],
                    planned=self._job.host_of[rank],
                    planned_ranks=len(self._job.ranks),
                ),
            )
            for rank, launch in self._launches.items()
        }


def rank_file(host: str, start: PlannedStart, first: Sequence[int], environment: Mapping[str, str]) -> bytes:
    """How a rank starts, as lab/native/cluster/rank.c reads it: keys and values, each ended by a zero."""
    ours = start.environment
    pairs = [("host", host)]
    pairs += [("set", f"{name}={ours[name]}") for name in ours if ours[name] != environment.get(name)]
    pairs += [("unset", name) for name in environment if name not in ours]
    pairs += [("cpu", str(cpu)) for cpu in first]
    pairs += [("before", word) for word in start.before]
    return b"".join(f"{key}\0{value}\0".encode(errors="surrogateescape") for key, value in pairs)


def starting_ranks(job: JobPlan, argv: Sequence[str]) -> tuple[list[str], str]:
    """(the command with nlab-rank before the program of the ranks, that program's file).

    Raises UsageError where no word of the command is the plan's program, or the plan is of nothing.
    """
    if not job.ranks:
        raise UsageError("the plan has no ranks", "make it again with 'nmap plan job/'")
    apps = [plan.app for plan in job.hosts.values()]
    names = {app.name for app in apps} | {Path(app.argv[0]).name for app in apps if app.argv}
    words, program, placed = [], "", False
    for number, word in enumerate(argv):
        placed = placed and word != ":"  # behind which launchers take another program
        if number and not placed and Path(word).name in names and (found := shutil.which(word)):
            words.append(STARTER)
            placed, program = True, program or found
        words.append(word)
    if not program:
        what = " or ".join(sorted(filter(None, names))) or "no program"
        raise UsageError(
            f"the plan is of {what}, which the command does not start", "give: -- mpirun -n 4 ./app"
        )
    return words, program
