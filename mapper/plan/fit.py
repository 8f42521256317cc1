"""Whether a plan belongs to what a program does today: the same program, the same threads."""

from collections.abc import Sequence

from numaplan.common import UsageError

from .file import Plan
from .parts import PlanApp

_HINT = "record with as many threads as planned, or plan again"


def planned_nodes(plan: Plan, threads: Sequence[tuple[str, str]], name: str) -> list[int]:
    """The node id that the plan `name` gives each of today's threads, (process, creation path).

    Raises UsageError when it lacks one, or when today's run has fewer than half of its threads: the node
    loads of such a run say nothing of the plan.
    """
    planned = {(thread.process, thread.path): thread.node for thread in plan.threads}
    unknown = [key for key in threads if key not in planned]
    if unknown:
        process, path = unknown[0]
        raise UsageError(
            f"{name}: {len(unknown)} of today's {len(threads)} threads are not in it"
            f" (first: {process} {path})",
            _HINT,
        )
    if len(planned) > 2 * len(threads):
        raise UsageError(f"{name}: for {len(planned)} threads, today there are {len(threads)}", _HINT)
    return [planned[key] for key in threads]


def doubts(plan: Plan, app: PlanApp, name: str) -> list[str]:
    """What makes it doubtful that a plan is for the program that runs today, `app`, in sentences."""
    found = []
    one, other = _program(plan.app.argv), _program(app.argv)
    rebuilt = plan.app.build_id != app.build_id or not app.build_id
    if one and other and one != other and rebuilt:
        found.append(f"{name} was made for another program ({one}, not {other})")
    missing = len(plan.threads) - app.threads
    if missing > 0:
        found.append(f"{missing} of the {len(plan.threads)} threads in {name} did not run today")
    return found


def _program(argv: Sequence[str]) -> str:
    return argv[0].rpartition("/")[2] if argv else ""
