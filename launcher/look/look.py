"""One look: two snapshots some seconds apart, and what follows from them."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from numaplan.common import NotSoError, UsageError
from numaplan.machine import Machine, read_sysfs

from .find.findings import Answer, find
from .find.view import View
from .read.sampling import sampling
from .read.snapshot import ROOT, read_snapshot


def whole_machine(root: Path = ROOT) -> Machine:
    """The machine with all its cpus and nodes, whatever of it we may use ourselves."""
    return Machine.of(read_sysfs(root, restrict=False))


def look(
    machine: Machine, members: Callable[[], Sequence[int]], seconds: float, wait: Callable[[float], object]
) -> tuple[View, Answer]:
    """Look at processes for so long; members: their ids, asked at each snapshot. Raises NotSoError."""
    pids = members()
    with sampling(machine, pids, seconds) as taken, suppress(UsageError):  # they may be gone
        before = read_snapshot(ROOT, pids)
        wait(seconds)
        sampled = taken()
        after = read_snapshot(ROOT, members(), before)
        if after.processes:
            view = View(before, after, machine, sampled)
            return view, find(view)
    raise NotSoError(
        "it ended while it was looked at", "look again, or start it with 'numaplan look -- ./app'"
    )


def nothing_seen(machine: Machine, reason: str) -> tuple[View, Answer]:
    """What a look says that saw no process, for this reason."""
    now = read_snapshot(ROOT, ())
    return View(now, now, machine), Answer((), reason, sure=False)
