"""One start of a program whose plan is to be found: what was found, and the ways to run it."""

import os
from collections.abc import Callable, Collection
from contextlib import suppress

import msgspec

from numaplan.common import NumaplanError, check_output, find_program, tell
from numaplan.mapper import StoredPlan

from ..launch.request import CheckedLaunch, LaunchRequest, Target, checked, look_at
from ..verify.applied import Applied
from .bare import become
from .options import AutoOptions
from .search import Search, fitted_here, search, use_of

_LONGEST = 2000  # characters of a line: an address may have any length


class Auto(msgspec.Struct, frozen=True):
    """One start. cpus: those that we had."""

    request: LaunchRequest
    options: AutoOptions
    program: str
    target: Target | None
    search: Search
    cpus: Collection[int]

    @property
    def is_first(self) -> bool:
        """Whether no other rank of the job is to speak instead of us."""
        return self.target is None or self.target.root in ("p0", "r0")

    def say(self, text: str) -> None:
        """A line on stderr, if somebody reads there."""
        if self.is_first and not self.request.quiet:
            with suppress(OSError):
                tell(f"nlaunch: {_cut(' '.join(text.split()))}")

    def launch(self, stored: StoredPlan) -> CheckedLaunch:
        """The launch with a stored plan; raises NumaplanError."""
        assert self.target is not None
        request = msgspec.structs.replace(self.request, plan_path=stored.where)
        plan, line = fitted_here(stored.plan, self.target)
        return checked(request, self.target, plan, self._noting(stored), [line] if line else ())

    def run_bare(self) -> int:
        """Become the program."""
        environment = self.target.environment if self.target else os.environ
        become(self.program, self.request.argv, environment, self.cpus)

    def _noting(self, stored: StoredPlan) -> Callable[[Applied], None]:
        def note(applied: Applied) -> None:
            use = use_of(applied)
            if use and self.is_first and self.search.known:
                self.search.known.store.note_use(stored, use)

        return note


def find(request: LaunchRequest, options: AutoOptions) -> Auto:
    """Look up the plan for a request. Raises UsageError for what is wrong with the request alone."""
    program = find_program(request.argv)
    if request.report_path:
        check_output(request.report_path.replace("%r", "p0"))
    cpus = os.sched_getaffinity(0)
    try:
        target = look_at(request.argv)
    except NumaplanError as error:
        return Auto(request, options, program, None, Search.failed(str(error)), cpus)
    return Auto(request, options, program, target, search(options, [*request.argv], target), cpus)


def _cut(text: str) -> str:
    """The text, without its middle where it is too long."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
