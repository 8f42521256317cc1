"""Engines: the same answers from all, errors of the work, and workers that die."""

import os
import select
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from numaplan.common import NotSoError, UsageError, check_engine, run_all
from tests.support.waiting import PATIENCE_S


def double(number: int) -> int:
    return 2 * number


def die_once(mark: Path, number: int) -> int:
    """The worker that gets the third piece first is killed."""
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def die(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refuse(number: int) -> int:
    if number == 3:
        raise UsageError("piece 3 cannot be", "mend it")
    return number


@pytest.mark.parametrize("engine", ["local", "local:1", "local:3"])
def test_answers_come_in_order(engine: str) -> None:
    seen: list[int] = []
    assert run_all(engine, double, range(10), seen.append) == list(range(0, 20, 2))
    assert seen == list(range(1, 11))
    assert run_all(engine, double, []) == []


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    assert run_all("local:2", partial(die_once, tmp_path / "mark"), range(6)) == list(range(6))


def test_a_piece_that_kills_every_worker_is_told() -> None:
    with pytest.raises(NotSoError, match=r"pieces of work are lost") as caught:
        run_all("local:2", die, range(6))
    assert str(caught.value).count("\n") == 0


def wait_for_ever(_number: int) -> None:
    """Say who we are, in lines of one write, and stay."""
    os.write(1, f"{os.getpid()}\n".encode())
    signal.pause()


def test_workers_end_with_who_started_them_though_it_is_killed() -> None:
    script = (
        f"from {__name__} import *\nif __name__ == '__main__': run_all('local:2', wait_for_ever, range(2))"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        workers = [os.pidfd_open(int(killed.stdout.readline())) for _ in range(2)]
        killed.kill()
        for worker in workers:
            assert select.select([worker], [], [], PATIENCE_S)[0]
            os.close(worker)


@pytest.mark.parametrize("engine", ["local:1", "local:2"])
def test_errors_of_the_work_keep_their_words(engine: str) -> None:
    with pytest.raises(UsageError) as caught:
        run_all(engine, refuse, range(6))
    assert str(caught.value) == "piece 3 cannot be — mend it"


@pytest.mark.parametrize("engine", ["", "local:x", "local:0", "local:99999", "dask", "dask:", "ray", "mpi:2"])
def test_words_that_are_no_engine(engine: str) -> None:
    with pytest.raises(UsageError, match="no such engine"):
        check_engine(engine)
