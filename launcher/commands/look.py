"""`numaplan look`: whether NUMA hurts what runs, and what to do."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from numaplan.common import Argument, Command, Json, Option, UsageError, program_files, read_pids, run_command


class LookCommand(Command, frozen=True):
    """Say whether NUMA hurts what runs, and which command mends it, without a recording.

    Looks for two seconds at where threads run and may run, where memory is and under which policy, and at
    what the kernel does meanwhile. Needs no more rights than the processes' own.

    Exit codes: 0 whatever was found, of './app' the program's own; 1 where the process ended meanwhile.

    Example: numaplan look 4711

    Example: numaplan look -- ./app 1000

    Example: numaplan look --unit nginx --metrics /var/lib/node_exporter/numaplan.prom --watch
    """

    words: Annotated[
        list[str], Argument("PID|APP", help="Running processes (4711,4712 too), or after -- a program.")
    ] = []
    unit: Annotated[str, Option(help="All processes of a systemd unit.", metavar="NAME")] = ""
    cgroup: Annotated[str, Option(help="All processes of a cgroup.", metavar="PATH")] = ""
    container: Annotated[str, Option(help="All processes of a container.", metavar="ID")] = ""
    slurm: Annotated[str, Option(help="All processes of a Slurm job on this host.", metavar="JOB")] = ""
    seconds: Annotated[float, Option(help="How long a look takes.", least=0.1, most=3600)] = 2.0
    watch: Annotated[bool, Option(help="Look again and again.")] = False
    as_json: Json = False
    metrics: Annotated[
        str,
        Option(
            help="Write metrics for node exporter's textfile collector.", metavar="FILE.PROM", writes=True
        ),
    ] = ""

    def run(self) -> int:
        from ..look.session import Shown, look_at, look_at_program

        shown = Shown(self.as_json, self.metrics, self.seconds, self.watch)
        running, pids = self._members()
        shown.check(() if running or pids else program_files(self.words))
        if running:
            return look_at(running, shown)
        if pids:
            return look_at(lambda: _alive(pids), shown)
        return look_at_program(self.words, shown)

    def _members(self) -> tuple[Callable[[], Sequence[int]] | None, tuple[int, ...]]:
        """How to find the processes of what is named; the ids that were given."""
        from ..look.read import groups

        root = Path("/")
        named = {
            "--unit": (self.unit, groups.of_unit),
            "--cgroup": (self.cgroup, groups.of_cgroup),
            "--container": (self.container, groups.of_container),
            "--slurm": (self.slurm, groups.of_slurm_job),
        }
        given = [option for option, (name, _) in named.items() if name]
        if len(given) + bool(self.words) != 1:
            raise UsageError(
                f"{' and '.join(given) or 'nothing'} given" if not self.words else "two things to look at",
                "give one: a process id, --unit, --cgroup, --container, --slurm, or -- and a program",
            )
        if given:
            name, find = named[given[0]]
            return lambda: find(root, name), ()
        if all(word.replace(",", "0").isdecimal() for word in self.words):
            return None, read_pids("process", self.words)
        return None, ()


def _alive(pids: Sequence[int]) -> tuple[int, ...]:
    from ..look.read.groups import with_children

    return with_children(Path("/"), pids)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `numaplan look`; returns the exit code."""
    return run_command(LookCommand, "numaplan look", arguments, no_args_is_help=True)
