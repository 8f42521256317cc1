"""`nlaunch --auto`: a program with the plan that is stored for it, else without."""

from numaplan.common import NotSoError, NumaplanError
from numaplan.mapper import StoredPlan

from .start import Auto


def run(auto: Auto) -> int:
    """Run the program; the exit code that the command ends with. Raises NotSoError: a plan is required."""
    found = auto.search.found
    reason: int | str = auto.search.reason
    if auto.options.mode == "record" and not auto.search.is_own:
        from .recording import record_and_plan

        reason = record_and_plan(auto)
        if isinstance(reason, int):
            return reason
    if found.stored:
        reason = _run_with(auto, found.stored)
        if isinstance(reason, int):
            return reason
    if auto.options.mode == "require":
        raise _required(str(reason))
    auto.say(f"{reason}; runs without a plan")
    return auto.run_bare()


def foreseen(auto: Auto) -> StoredPlan | str:
    """The plan that run() would take; a text: it would take none, and what it would do. Raises as run()."""
    search = auto.search
    reason = search.reason
    if auto.options.mode == "record" and not search.is_own and search.known:
        from .recording import obstacle_of

        obstacle = obstacle_of(search.known)
        if not obstacle:
            return f"{reason}: would be recorded, if something here can ('nprof doctor')"
        reason = f"not recorded: {obstacle}"
    if search.found.stored:
        return search.found.stored
    if auto.options.mode == "require":
        raise _required(reason)
    return f"{reason}: would run without"


def _required(reason: str) -> NotSoError:
    return NotSoError(reason, "put one there with 'nmap store put', or leave =require out")


def _run_with(auto: Auto, stored: StoredPlan) -> int | str:
    """The exit code; or why the plan could not be used after all, before the program was started."""
    from ..launch.launch import launch_checked

    if not auto.search.is_own:
        auto.say(f"none for this class of run: takes {stored.where}")
    try:
        return launch_checked(auto.launch(stored))
    except NumaplanError as error:
        return f"plan not used: {error}"
