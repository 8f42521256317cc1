"""`nlaunch --online`, `--attach`, `--all-mine`: from the words of the command line to a session."""

from collections.abc import Sequence
from dataclasses import dataclass

from numaplan.common import UsageError
from numaplan.common.lazy import load_numpy
from numaplan.launcher.online.options import OnlineOptions, read_budget, read_pids


@dataclass(frozen=True)
class OnlineWords:
    """The options as they were given; empty where they were not."""

    policy: str = ""
    attach: tuple[str, ...] = ()
    all_mine: bool = False
    settings: tuple[str, ...] = ()
    budget: str = ""
    overhead: float = 0.01
    sampler: str = "auto"
    journal: str = ""
    save: str = ""
    quiet: bool = False

    @property
    def given(self) -> bool:
        """Whether anything online was asked for."""
        return bool(self.policy or self.attach or self.all_mine)

    def options(self) -> OnlineOptions:
        """Checked; raises UsageError naming what is wrong."""
        if not self.policy:
            raise UsageError("--attach and --all-mine need a policy", "add for example --online nimar+lmma")
        if not 0 < self.overhead <= 1:
            raise UsageError(f"--overhead {self.overhead:g}: not a share", "give more than 0, at most 1")
        moves, megabytes = read_budget(self.budget)
        return OnlineOptions(
            policy=self.policy,
            settings=self.settings,
            moves=moves,
            megabytes=megabytes,
            journal=self.journal,
            save=self.save,
            backend=self.sampler,
            overhead=self.overhead,
            quiet=self.quiet,
        )


def run_online(words: OnlineWords, argv: Sequence[str]) -> int:
    """Run a program without a plan, or attach to what runs; returns the exit code."""
    load_numpy()
    from numaplan.launcher.online.running import attach_online, attach_to_all, launch_online

    options = words.options()
    if not (words.attach or words.all_mine):
        return launch_online(options, argv)
    if argv:
        raise UsageError("--attach and --all-mine start no program", "leave the program out, or the option")
    if words.save:
        raise UsageError("--save needs a program that nlaunch starts", "identities are seen only then")
    return attach_to_all(options) if words.all_mine else attach_online(options, read_pids(words.attach))
