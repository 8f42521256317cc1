"""The configurations the lab can run a program under: what differs is only who places threads and memory."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from numaplan.common import UsageError
from numaplan.launcher.lab.job import Job
from numaplan.launcher.lab.planned import PlannedLaunch
from numaplan.profiler.machine import Machine

_NLAUNCH = "import sys; from numaplan.launcher.cli import main; sys.argv[0] = 'nlaunch'; sys.exit(main())"


@dataclass(frozen=True)
class Options:
    """What configurations may need: a launch prepared with the plan, the online policy, nlaunch's report."""

    launch: PlannedLaunch | None = None
    online: str = ""
    report: Path = Path("applied.json")


def _default(job: Job, machine: Machine, options: Options) -> Job:  # noqa: ARG001
    return job


def _no_autonuma(job: Job, machine: Machine, options: Options) -> Job:  # noqa: ARG001
    return replace(job, balancing=False)


def _interleave(job: Job, machine: Machine, options: Options) -> Job:  # noqa: ARG001
    return replace(job, interleave=True)


def _compact(job: Job, machine: Machine, options: Options) -> Job:  # noqa: ARG001
    return replace(job, cpus=[cpu for node in machine.cpu_nodes for cpu in node.cpus])


def _scatter(job: Job, machine: Machine, options: Options) -> Job:  # noqa: ARG001
    deepest = max(len(node.cpus) for node in machine.cpu_nodes)
    turns = [[node.cpus[k] for node in machine.cpu_nodes if k < len(node.cpus)] for k in range(deepest)]
    return replace(job, cpus=[cpu for turn in turns for cpu in turn])


def _plan(job: Job, machine: Machine, options: Options) -> Job:  # noqa: ARG001
    assert options.launch is not None
    return replace(job, environment=options.launch.environment)


def _online(job: Job, machine: Machine, options: Options) -> Job:  # noqa: ARG001
    return _launched(job, "--online", *shlex.split(options.online))


def _online_alone(job: Job, machine: Machine, options: Options) -> Job:
    return replace(_online(job, machine, options), balancing=False)


def _launched(job: Job, *words: str) -> Job:
    """The same program started and attended by nlaunch, which runs in the guest."""
    argv = [sys.executable, "-c", _NLAUNCH, *words, "--", *job.argv]
    return replace(job, program=sys.executable, argv=argv, exclude=True)


CONFIGS: dict[str, tuple[Callable[[Job, Machine, Options], Job], str]] = {
    "default": (_default, "the kernel places all (AutoNUMA on)"),
    "no-autonuma": (_no_autonuma, "the kernel places all, AutoNUMA off"),
    "interleave": (_interleave, "pages interleaved over all nodes"),
    "compact": (_compact, "the k-th thread on the k-th cpu, nodes filled in turn"),
    "scatter": (_scatter, "threads dealt to the nodes in turn"),
    "plan": (_plan, "as nlaunch with the plan"),
    "online": (_online, "nlaunch with an online policy, beside AutoNUMA"),
    "online-alone": (_online_alone, "the same, AutoNUMA off"),
}


def parse_configs(text: str, plan: str, online: str) -> list[str]:
    """Names from a comma-separated list, nothing for the usual ones.

    Raises UsageError for names that are unknown, or that need a plan or policy which is not given.
    """
    usual = [
        "default",
        "no-autonuma",
        "interleave",
        "compact",
        *["plan"] * bool(plan),
        *["online"] * bool(online),
    ]
    names = [name.strip() for name in text.split(",") if name.strip()] if text else usual
    unknown = [name for name in names if name not in CONFIGS]
    if unknown or not names:
        raise UsageError(
            f"no configuration {', '.join(unknown) or text!r}", f"there are {', '.join(CONFIGS)}"
        )
    if "plan" in names and not plan:
        raise UsageError("configuration 'plan' needs a plan", "give --plan plan.json")
    if {"online", "online-alone"} & set(names) and not online:
        raise UsageError("configuration 'online' needs a policy", "give --online nimar")
    return list(dict.fromkeys(names))


def is_launcher(argv: Sequence[str]) -> bool:
    """Whether a command line starts nlaunch, whose own accesses are not the program's."""
    name = Path(argv[0]).name if argv else ""
    return name == "nlaunch" or (name == "numaplan" and list(argv[1:2]) == ["launch"])


def make_job(
    name: str,
    program: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    directory: str,
    machine: Machine,
    options: Options,
    timeout: float = 0.0,
) -> Job:
    """The job that runs a program under a configuration."""
    job = Job(program, list(argv), environment, directory, timeout=timeout, exclude=is_launcher(argv))
    return CONFIGS[name][0](job, machine, options)
