"""Recording messages beside whatever else is recorded: which way, and what came of it."""

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from numaplan.common import MachineLacksError, UsageError

from ..identity.records import Identity
from .implementation import MPICH, implementation_of
from .linking import uses_intercommunicators
from .message import Found, Way
from .monitoring import Monitoring, in_use

MESSAGES = "messages"  # the folder that ranks leave them in, in a recording's own
CHOICES = ("auto", "monitoring", "pmpi", "no")
_RANK = re.compile("r([0-9]{1,8})")
_LISTED = 8
_ALONE = (
    "no messages: each rank is alone in MPI, which the launcher's numbers did not reach (by srun, MPICH needs"
    " SLURM_MPI_TYPE=pmi2 in the environment, Open MPI pmix)"
)


def way_of(choice: str, argv: Sequence[str], environment: Mapping[str, str]) -> Way | None:
    """How to record messages of a program that is started in this environment; None: not.

    Raises UsageError for a choice that there is not, MachineLacksError for one that cannot work here.
    """
    if choice not in CHOICES:
        raise UsageError(f"--messages {choice}", f"give one of {', '.join(CHOICES)}")
    if choice == "no" or not argv:
        return None
    if choice == "monitoring":
        return Monitoring()
    implementation = implementation_of(argv, environment)
    if choice == "pmpi" or implementation == MPICH:
        return _library(implementation, argv, needed=choice == "pmpi")
    if in_use(environment):
        return None
    # Open MPI's monitoring crashes on peers of another group.
    if uses_intercommunicators([path for path in map(shutil.which, argv) if path], environment):
        return _library(implementation, argv, needed=False)
    return Monitoring()  # which only Open MPI's programs notice


def _library(implementation: str, argv: Sequence[str], *, needed: bool) -> Way:
    from .building import build
    from .library import Library

    try:
        return Library(build(implementation, argv[:1]))
    except MachineLacksError as error:
        if needed:
            raise
        return Nothing(f"{error.what}: {error.hint}")


@dataclass(frozen=True)
class Nothing:
    """Messages cannot be recorded here; a job's ranks are told to have left none."""

    why_none: str
    name = "no"
    when_killed = ""

    def environment(self, folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
        """See Way.environment."""
        del folder
        return dict(environment)

    def read(self, folder: Path) -> Found:
        """See Way.read."""
        del folder
        return Found((), frozenset())


def read_messages(way: Way, folder: Path, identity: Identity, ranks: int = 0) -> Found:
    """What was recorded, with a warning of ranks that used MPI and left nothing.

    ranks: as many as the launcher has started, 0: not known. Where each of them is alone in MPI, nothing is
    known of what they send each other.
    """
    found = way.read(folder)
    launched = _ranks(identity)
    if launched and (found.size == 1 < ranks or found.ranks - launched):
        return Found((), frozenset(), (*found.warnings, _ALONE))
    silent = sorted(_ranks_with_mpi(identity) - found.ranks)
    if not silent:
        return found
    listed = ", ".join(map(str, silent[:_LISTED])) + (" …" if len(silent) > _LISTED else "")
    warning = f"no messages of rank{'s' * (len(silent) > 1)} {listed}: {way.why_none}"
    return found._replace(warnings=(*found.warnings, warning))


def _ranks_with_mpi(identity: Identity) -> set[int]:
    """Ranks whose process loaded an MPI library."""
    return _numbers(one.process for one in identity.modules if one.name.startswith("libmpi"))


def _ranks(identity: Identity) -> set[int]:
    """Ranks that the launcher has started."""
    return _numbers(one.process for one in identity.processes)


def _numbers(processes: Iterable[str]) -> set[int]:
    names = (_RANK.fullmatch(process) for process in processes)
    return {int(name[1]) for name in names if name}
