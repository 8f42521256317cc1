"""Who follows the program while it runs: the tracer, the watch, the matching of roles, online refinement.

Each is loaded only when it is asked for: the program waits.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaplan.common import load_numpy

from ..enforce.plan_table import PlanTable
from ..enforce.program import gains_privileges
from ..enforce.tracer import Tracer
from .request import CheckedLaunch

if TYPE_CHECKING:
    from ..online.session import OnlineSession
    from ..roles.matcher import Matcher
    from ..verify.watch import Watch


class Helpers(msgspec.Struct, frozen=True):
    """Who follows the program while it runs; None: not asked for."""

    tracer: Tracer | None
    watch: "Watch | None"
    matcher: "Matcher | None"
    online: "OnlineSession | None" = None

    def started(self, pid: int) -> None:
        """The program runs."""
        if self.online:
            self.online.start(lambda: [pid])
        if self.tracer:
            self.tracer.started()
        for other in (self.watch, self.matcher):
            if other:
                other.start()

    def stop(self) -> None:
        """It has ended."""
        for other in (self.watch, self.matcher):
            if other:
                other.stop()
        if self.online:
            self.online.stop(restore=False)


def prepare_helpers(launch: CheckedLaunch, workdir: Path, table_file: Path, table: PlanTable) -> Helpers:
    """Those that the request asks for, ready to follow the program; what they need is loaded."""
    request = launch.request
    watch = matcher = None
    if request.match or request.watch:
        load_numpy()
    if request.match:
        from ..roles.matcher import Matcher

        matcher = Matcher(launch.plan, table, workdir, request.match_seconds, request.match_trace)
    if request.watch:
        from ..verify.watch import Watch

        current = (lambda: matcher.plan) if matcher else (lambda: launch.plan)
        watch = Watch(current, table, workdir, request.watch, request.quiet)
    return Helpers(_tracer(launch, workdir, table_file), watch, matcher, _online(launch))


def _online(launch: CheckedLaunch) -> "OnlineSession | None":
    if launch.request.online is None:
        return None
    load_numpy()
    from ..online.session import OnlineSession

    masks = [frozenset(thread.cpus) for thread in launch.plan.threads]
    session = OnlineSession(launch.request.online, launch.machine, masks)
    session.prepare([os.getpid()])  # what we start is watched with us
    return session


def _tracer(launch: CheckedLaunch, workdir: Path, table_file: Path) -> Tracer | None:
    by = launch.request.by
    if by == "preload" or (by == "auto" and not launch.obstacle):
        return None
    if by == "auto" and os.geteuid() != 0 and gains_privileges(launch.executable):
        return None  # the kernel would take its privileges away under a tracer that has none
    return Tracer(workdir, table_file, launch.root, launch.request.override)
