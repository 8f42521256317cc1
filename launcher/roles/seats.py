"""Running threads bound to the seats of the roles that they play."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from numaplan.mapper import Plan, PlanThread

from ..verify.logged_run import LoggedRun


def seated(
    plan: Plan,
    seats: Mapping[int, PlanThread],
    tids: Mapping[tuple[str, str], int],
    read_logged: Callable[[], LoggedRun],
) -> tuple[Plan, int]:
    """Bind the threads of these rows to other seats; the plan as it is now, and how many took theirs.

    A thread that logged its cpus for the last time before it was bound had ended, even if the kernel knew it.
    """
    threads, bound = list(plan.threads), list[int]()
    for row, seat in seats.items():
        with suppress(OSError):  # it has just ended
            os.sched_setaffinity(tids[threads[row].process, threads[row].path], seat.cpus)
            bound.append(row)
    logged, moved = read_logged().threads, 0
    for row in bound:
        thread, seat = threads[row], seats[row]
        last = logged[thread.process, thread.path]
        if not last.ended or set(last.cpus) == set(seat.cpus):
            threads[row] = msgspec.structs.replace(thread, node=seat.node, cpus=seat.cpus)
            moved += 1
    return msgspec.structs.replace(plan, threads=tuple(threads)), moved
