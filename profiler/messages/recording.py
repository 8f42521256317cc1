"""Recording messages beside whatever else is recorded: which way, and what came of it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from numaplan.common import UsageError

from ..identity.records import Identity
from .message import Found, Way
from .monitoring import Monitoring, in_use

MESSAGES = "messages"  # the folder that ranks leave them in, in a recording's own
CHOICES = ("auto", "monitoring", "no")
_RANK = re.compile("r([0-9]{1,8})")
_LISTED = 8


def way_of(choice: str, argv: Sequence[str], environment: Mapping[str, str]) -> Way | None:
    """How to record messages of a program that is started in this environment; None: not.

    Raises UsageError for a choice that there is not.
    """
    if choice not in CHOICES:
        raise UsageError(f"--messages {choice}", f"give one of {', '.join(CHOICES)}")
    if choice == "no" or not argv or (choice == "auto" and in_use(environment)):
        return None
    return Monitoring()


def read_messages(way: Way, folder: Path, identity: Identity) -> Found:
    """What was recorded, with a warning of ranks that used MPI and left nothing."""
    found = way.read(folder)
    silent = sorted(_ranks_with_mpi(identity) - found.ranks)
    if not silent:
        return found
    listed = ", ".join(map(str, silent[:_LISTED])) + (" …" if len(silent) > _LISTED else "")
    ranks = f"rank{'s' * (len(silent) > 1)} {listed}"
    warning = f"no messages of {ranks}: {way.why_none}"
    return found._replace(warnings=(*found.warnings, warning))


def _ranks_with_mpi(identity: Identity) -> set[int]:
    """Ranks whose process loaded an MPI library."""
    names = (_RANK.fullmatch(one.process) for one in identity.modules if one.name.startswith("libmpi"))
    return {int(name[1]) for name in names if name}
