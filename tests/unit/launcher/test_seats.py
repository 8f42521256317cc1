"""Running threads bound to the seats of the roles that they play, some of which end meanwhile."""

import os
import threading
from collections.abc import Iterator

import msgspec
import pytest

from numaplan.launcher.roles.seats import seated
from numaplan.launcher.verify.logged_run import LoggedRun, LoggedThread
from numaplan.machine import Machine
from numaplan.mapper import Plan
from tests.support.outside import plan_of_threads

KEY = ("p0", "0.1")


@pytest.fixture
def waiting() -> Iterator[int]:
    """The tid of a thread that waits."""
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    yield thread.native_id or 0
    ends.set()
    thread.join()


def moved(tid: int, last: LoggedThread) -> tuple[Plan, Plan, int]:
    """The plan with another seat's cpus for this thread, what it became, and how many moved."""
    plan = plan_of_threads([("p0", "0"), KEY], machine=Machine.load("2x2"))
    here = tuple(sorted(os.sched_getaffinity(0)))[:1]
    seat = msgspec.structs.replace(plan.threads[0], node=1, cpus=here)
    logged = LoggedRun(["p0"], {KEY: last})
    now, count = seated(plan, {1: seat}, {KEY: tid}, lambda: logged)
    wanted = (plan.threads[0], msgspec.structs.replace(plan.threads[1], node=1, cpus=here))
    return msgspec.structs.replace(plan, threads=wanted), now, count


def test_one_that_runs_takes_its_seat(waiting: int) -> None:
    wanted, now, count = moved(waiting, LoggedThread(*KEY, tid=waiting, cpus=(63,)))
    assert now == wanted and count == 1
    assert os.sched_getaffinity(waiting) == set(now.threads[1].cpus)


def test_one_that_ended_where_it_was_moved_to_took_it(waiting: int) -> None:
    here = tuple(sorted(os.sched_getaffinity(0)))[:1]
    wanted, now, count = moved(waiting, LoggedThread(*KEY, tid=waiting, cpus=here, ended=True))
    assert now == wanted and count == 1


def test_one_whose_last_cpus_were_logged_before_keeps_its_seat(waiting: int) -> None:
    """The kernel knows a thread for a moment longer than it logs."""
    wanted, now, count = moved(waiting, LoggedThread(*KEY, tid=waiting, cpus=(63,), ended=True))
    assert now.threads[0] == wanted.threads[0] and now.threads[1] != wanted.threads[1] and count == 0


def test_one_that_is_gone_keeps_its_seat() -> None:
    pid = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(pid, 0)
    wanted, now, count = moved(pid, LoggedThread(*KEY, tid=pid, cpus=(63,)))
    assert now.threads[1] != wanted.threads[1] and count == 0
