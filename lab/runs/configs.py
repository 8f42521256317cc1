"""The configurations the lab can run a program under: what differs is only who places threads and memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from numaplan.common import UsageError
from numaplan.launcher import (
    PlannedStart,
    make_plan_table,
    make_report,
    memory_notes,
    planned_start,
    read_logged_run,
)
from numaplan.machine import Machine
from numaplan.mapper import AppliedRank, Plan

from ..guest.job import Job


class PlannedLaunch:
    """A launch of `program` with a plan in the guest.

    What nlaunch does before and after a program is done on this side, where Python is some forty times as
    fast as in the guest; the library, or the tracer, enforces and logs there. Raises UsageError when the plan
    cannot be used. plan: for this machine; folder: for their files; empty, and the program's user must be
    able to write there; root: the program's first process in the plan.
    """

    def __init__(
        self,
        plan: Plan,
        program: str,
        machine: Machine,
        environment: Mapping[str, str],
        folder: Path,
        root: str = "p0",
    ) -> None:
        self._plan = plan
        self._root = root
        self._table = make_plan_table(self._plan, machine, program, "float", environment)
        self._folder = folder
        place = folder / "plan.bin"
        place.write_bytes(self._table.data)
        self.masks = [frozenset(thread.cpus) for thread in self._plan.threads]
        self._start = planned_start(place, program, environment)

    @property
    def from_outside(self) -> bool:
        """Whether a tracer binds the program's threads: nothing can be loaded into it."""
        return bool(self._start.before)

    def started(self, job: Job) -> Job:
        """The job with the plan enforced."""
        before = self._start.before
        program, argv = (before[0], [*before, *job.argv]) if before else (job.program, job.argv)
        return replace(job, program=program, argv=argv, environment=self._start.environment, first=self.first)

    @property
    def start(self) -> PlannedStart:
        """What is started in place of the program."""
        return self._start

    @property
    def first(self) -> list[int]:
        """The cpus on which it starts; none where it may start anywhere."""
        return [] if self.from_outside else sorted(self._table.first.get(self._root, ()))

    def report(self, exit_code: int, rank: AppliedRank | None = None) -> dict[str, Any]:
        """What was applied (`numaplan/applied/1`), from the log of the library or the tracer."""
        notes: Sequence[str] = ()
        if self.from_outside:
            nodes = self._table.spread.get(self._root, ())
            notes = memory_notes(self._plan, nodes, self._start.obstacle)
        applied = make_report(
            self._plan,
            self._table,
            read_logged_run(self._folder, self._table.processes),
            exit_code,
            tuple(notes),
            root=self._folder,  # no system's files: those of the host are not the guest's
        )
        if rank:
            applied = msgspec.structs.replace(applied, rank=rank)
        content: dict[str, Any] = msgspec.to_builtins(applied)
        return content


@dataclass(frozen=True)
class Options:
    """What configurations may need: a launch prepared with the plan, the environment that identities need."""

    launch: PlannedLaunch | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


def _compact(machine: Machine) -> list[int]:
    """The cpus node by node."""
    return [cpu for node in machine.cpu_nodes for cpu in node.cpus]


def _scattered(machine: Machine) -> list[int]:
    """The cpus dealt from the nodes in turn."""
    deepest = max(len(node.cpus) for node in machine.cpu_nodes)
    return [node.cpus[k] for k in range(deepest) for node in machine.cpu_nodes if k < len(node.cpus)]


def _planned(job: Job, options: Options) -> Job:
    assert options.launch is not None
    return options.launch.started(job)


def _online(job: Job, options: Options, *, balancing: bool) -> Job:
    """The same program, planned if there is a plan; the loop that attends it runs on the host."""
    job = _planned(job, options) if options.launch else job
    return replace(job, environment={**job.environment, **options.environment}, balancing=balancing)


CONFIGS: dict[str, Callable[[Job, Machine, Options], Job]] = {
    "default": lambda job, _machine, _options: job,  # the kernel places everything, AutoNUMA on
    "no-autonuma": lambda job, _machine, _options: replace(job, balancing=False),
    "interleave": lambda job, _machine, _options: replace(job, interleave=True),
    "compact": lambda job, machine, _options: replace(job, cpus=_compact(machine)),
    "scatter": lambda job, machine, _options: replace(job, cpus=_scattered(machine)),
    "plan": lambda job, _machine, options: _planned(job, options),
    "online": lambda job, _machine, options: _online(job, options, balancing=True),
    "online-alone": lambda job, _machine, options: _online(job, options, balancing=False),
}

ONLINE = ("online", "online-alone")  # AutoNUMA on beside the loop, or off


def parse_configs(text: str, plan: str, online: str) -> list[str]:
    """Names from a comma-separated list, nothing for the usual ones.

    Raises UsageError for names that are unknown, or that need a plan or policy which is not given, and for a
    plan or policy that no configuration uses.
    """
    usual = ["default", "no-autonuma", "interleave", "compact"]
    usual += ["plan"] * bool(plan) + ["online"] * bool(online)
    names = [name.strip() for name in text.split(",") if name.strip()] if text else usual
    unknown = [name for name in names if name not in CONFIGS]
    if unknown or not names:
        raise UsageError(
            f"no configuration {', '.join(unknown) or text!r}", f"there are {', '.join(CONFIGS)}"
        )
    for option, given, what, example, users in (
        ("--plan", plan, "a plan", "plan.json", ("plan",)),
        ("--online", online, "a policy", "nimar", ONLINE),
    ):
        using = [name for name in names if name in users]
        if using and not given:
            raise UsageError(f"configuration {using[0]!r} needs {what}", f"give {option} {example}")
        if given and not using:
            raise UsageError(f"{option} without configuration {users[0]!r}", f"add it, or leave {option} out")
    return list(dict.fromkeys(names))


def is_launcher(argv: Sequence[str]) -> bool:
    """Whether a command line starts nlaunch, whose own accesses are not the program's."""
    name = Path(argv[0]).name if argv else ""
    return name == "nlaunch" or (name == "numaplan" and list(argv[1:2]) == ["launch"])
