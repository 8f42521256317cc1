"""`nlaunch`: run a program with its plan, or refine the placement of what runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from numaplan.common import Argument, Option, UsageError, load_numpy, print_lines, read_pids, run_command

from .auto import AutoCommand

if TYPE_CHECKING:
    from ..launch.request import LaunchRequest
    from ..online.options import OnlineOptions

_ONLINE = "Online refinement (see docs/guide/refine.md)"
_WAYS = ("--plan", "--job", "--auto", "--online")


def _policies() -> str:
    from numaplan.mapper import policy_names

    return f"Refine while it runs: {', '.join(policy_names())}; each also with +next-touch."


class LaunchCommand(AutoCommand, frozen=True):
    """Run a program with its plan, and say what was applied.

    Each thread is bound before its first instruction, planned memory is placed before it is first touched; at
    the end the threads' cpus and the pages' nodes are read back and compared with the plan. The program's
    output, input, signals and exit code (128+signal when it died of one) are its own.

    Exit codes of nlaunch itself: 1 with --strict when something is not as planned, 2 for misuse, no such
    program, or a plan that cannot be read or is for another machine, 3 when the machine lacks something.

    With --job, each rank of a job takes its part of the job's plan, by its number and its host.

    With --auto, the plan is the one that 'nmap store' has for this build, machine and kind of run; without
    one the program runs as if nlaunch were not there. With --auto=record, its first run makes that plan.

    With --online, a policy refines the placement while the program runs; with --attach, that of processes
    that are already running.

    Example: nlaunch --plan plan.json --report applied.json ./app 1000

    Example: nlaunch --auto ./app 1000

    Example: nlaunch --online nimar+lmma ./app 1000
    """

    argv: Annotated[list[str], Argument("APP", help="The program and its arguments.", program=True)] = []
    plan: Annotated[str, Option(reads=True, help="The plan ('nmap plan' makes it).", metavar="PLAN.JSON")] = (
        ""
    )
    job: Annotated[
        str,
        Option(
            help="The plan of a job: each rank takes its part ('nmap plan' makes it).",
            metavar="JOB.JSON",
            reads=True,
        ),
    ] = ""
    report: Annotated[
        str,
        Option(
            help="Write what was applied; %r is the rank of a job; with --job, a folder.",
            metavar="APPLIED.JSON",
            writes=True,
        ),
    ] = ""
    remap: Annotated[
        bool | None,
        Option(
            "--remap",
            off="--no-remap",
            help="Fit a plan for another machine or cluster to this one; unasked only to a container's cpus.",
        ),
    ] = None
    strict: Annotated[bool, Option(help="Exit 1 when something is not as planned.")] = False
    unplanned: Annotated[
        str,
        Option(help="Threads not in the plan: float (where their pool or process works), anywhere, inherit."),
    ] = "float"
    override: Annotated[
        bool,
        Option(
            "--override",
            off="--respect-app",
            help="The plan overrides affinity that the program sets itself.",
        ),
    ] = False
    autonuma: Annotated[
        bool, Option(help="Let AutoNUMA move memory that the plan leaves to first touch.")
    ] = False
    by: Annotated[
        str,
        Option(
            help="How threads are bound: preload (a library in the program), ptrace (from outside), auto."
        ),
    ] = "auto"
    watch: Annotated[
        float,
        Option(help="Verify every so many seconds; 0: only at the end.", metavar="SECONDS"),
    ] = 0.0
    match: Annotated[bool, Option(help="Bind threads by the roles that they are seen to play.")] = False
    match_trace: Annotated[
        str,
        Option(help="The trace of the plan, to distinguish roles better.", metavar="TRACE.DB", reads=True),
    ] = ""
    match_seconds: Annotated[
        float, Option(help="How long to watch before threads are matched.", metavar="SECONDS")
    ] = 2.0
    explain: Annotated[bool, Option(help="Say what would be done; run nothing.")] = False
    quiet: Annotated[bool, Option("--quiet", "-q", help="No summary, no warning.")] = False
    online: Annotated[
        str,
        Option(
            help=_policies,
            metavar="POLICY",
            group=_ONLINE,
        ),
    ] = ""
    attach: Annotated[
        list[str], Option(help="Refine running processes.", metavar="PID[,PID]...", group=_ONLINE)
    ] = []
    all_mine: Annotated[bool, Option(help="Refine all processes of this user.", group=_ONLINE)] = False
    settings: Annotated[
        list[str],
        Option("--set", help="A parameter of the policy.", metavar="NAME=VALUE", group=_ONLINE),
    ] = []
    budget: Annotated[
        str,
        Option(
            help="At most so many thread moves and MB of pages per second (moves=8,mb=256).", group=_ONLINE
        ),
    ] = ""
    overhead: Annotated[
        float, Option(help="Share of all cpus' time that the loop may take.", metavar="SHARE", group=_ONLINE)
    ] = 0.01
    sampler: Annotated[
        str, Option(help="Where samples come from: auto, lab, pebs, ibs, faults.", group=_ONLINE)
    ] = "auto"
    journal: Annotated[
        str,
        Option(
            help="Append what was observed, done and undone, and why.",
            metavar="JOURNAL.JSONL",
            group=_ONLINE,
            writes=True,
        ),
    ] = ""
    save: Annotated[
        str,
        Option(
            help="Write the refined placement as a plan.", metavar="PLAN.JSON", group=_ONLINE, writes=True
        ),
    ] = ""

    def run(self) -> int:
        if not (self.plan or self.job or self.auto or self.online or self.attach or self.all_mine):
            ways = "--plan plan.json ('nmap plan' makes one), --auto, or --online POLICY"
            late = next((word for word in self.argv[1:] if word.split("=")[0] in _WAYS), "")
            if late:
                raise UsageError(
                    f"no plan given: {late} stands behind {self.argv[0]}, whose option it is",
                    f"give {ways} before the program",
                )
            raise UsageError("no plan given", f"give {ways}")
        if self.auto:
            self._refuse_idle_options()
            return self._run_auto()
        if self.attach or self.all_mine or not (self.plan or self.job):
            options = self.online_options()
            self._refuse_idle_options()
            return self._run_online(options)
        self._refuse_idle_options()
        from ..launch.launch import launch_program

        request = self.launch_request()
        if not self.explain:
            return launch_program(request)
        from ..launch.request import check
        from .explain import explain

        print_lines(*explain(check(request, starts=False)).split("\n"))
        return 0

    def _run_auto(self) -> int:
        from ..auto.run import foreseen, run
        from ..auto.start import find

        found = find(self.launch_request(), self.auto_options())
        if not self.explain:
            return run(found)
        stored = foreseen(found)
        if isinstance(stored, str):
            print_lines(stored)
            return 0
        from .explain import explain

        print_lines(f"plan {stored.where}", *explain(found.launch(stored)).split("\n"))
        return 0

    def _refuse_idle_options(self) -> None:
        import msgspec

        from .idle import refuse_idle_options

        refuse_idle_options(msgspec.structs.asdict(self), msgspec.structs.asdict(LaunchCommand()))

    def launch_request(self) -> "LaunchRequest":
        """What to launch and how; raises UsageError naming what is wrong."""
        from ..launch.request import BY, UNPLANNED, LaunchRequest

        for option, value, choices in (("--unplanned", self.unplanned, UNPLANNED), ("--by", self.by, BY)):
            if value not in choices:
                raise UsageError(f"{option} {value}: no such choice", f"one of {', '.join(choices)}")
        for option, seconds in (("--watch", self.watch), ("--match-seconds", self.match_seconds)):
            if not 0 <= seconds < 1e6:
                raise UsageError(f"{option} {seconds:g}: not a number of seconds", "give 0 or more")
        return LaunchRequest(
            self.argv,
            self.plan,
            self.report,
            self.remap,
            self.strict,
            self.unplanned,
            self.quiet,
            by=self.by,
            override=self.override,
            autonuma=self.autonuma,
            watch=self.watch,
            match=self.match or bool(self.match_trace),
            match_seconds=self.match_seconds,
            match_trace=self.match_trace,
            online=self.online_options() if self.online else None,
            job_path=self.job,
        )

    def online_options(self) -> "OnlineOptions":
        """The policy and how it may act; raises UsageError naming what is wrong."""
        from ..online.options import OnlineOptions, read_budget

        if not self.online:
            raise UsageError("--attach and --all-mine need a policy", "add for example --online nimar+lmma")
        if not 0 < self.overhead <= 1:
            raise UsageError(f"--overhead {self.overhead:g}: not a share", "give more than 0, at most 1")
        moves, megabytes = read_budget(self.budget)
        return OnlineOptions(
            policy=self.online,
            settings=tuple(self.settings),
            moves=moves,
            megabytes=megabytes,
            journal=self.journal,
            save=self.save,
            backend=self.sampler,
            overhead=self.overhead,
            quiet=self.quiet,
        )

    def _run_online(self, options: "OnlineOptions") -> int:
        """Run a program without a plan, or attach to what runs."""
        load_numpy()
        from ..online.running import attach_online, attach_to_all, launch_online

        if self.argv and (self.attach or self.all_mine):
            raise UsageError(
                "--attach and --all-mine start no program", "leave the program out, or the option"
            )
        if self.save and not self.argv:
            raise UsageError("--save needs a program that nlaunch starts", "threads are identified only then")
        pids = read_pids("--attach", self.attach)
        if self.explain:
            from .explain import explain_online

            print_lines(*explain_online(options, self.argv, pids, self.all_mine).split("\n"))
            return 0
        if self.all_mine:
            return attach_to_all(options)
        return attach_online(options, pids) if pids else launch_online(options, self.argv)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `nlaunch`; returns the exit code."""
    return run_command(LaunchCommand, "nlaunch", arguments, no_args_is_help=True)
