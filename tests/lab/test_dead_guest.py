"""A guest that hangs is given up with a word, not waited for; one that sleeps is not."""

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from numaplan.lab.guest import guest as module
from numaplan.lab.guest.control import GuestError
from numaplan.lab.guest.guest import Guest
from numaplan.lab.guest.health import Heartbeat, Patience
from numaplan.lab.guest.job import Job
from numaplan.lab.guest.qemu import spawn
from numaplan.lab.guest.shape import GuestShape, shape_guest
from numaplan.lab.runs.comparing import compare, raise_for
from numaplan.lab.runs.session import Request
from numaplan.machine import Machine
from tests.support.waiting import until

pytestmark = [pytest.mark.lab, pytest.mark.slow]
SAID = "rcu: rcu_preempt kthread timer wakeup didn't happen for 21012 jiffies! g22981\n"
TRUE, LONG = (Job(f"/bin/{words[0]}", words, {}, "/") for words in (["true"], ["sleep", "600"]))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list["subprocess.Popen[bytes]"]:
    """The processes of guests."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any) -> "subprocess.Popen[bytes]":
        processes.append(spawn(*arguments))
        return processes[-1]

    monkeypatch.setattr(module, "spawn", start)
    return processes


@pytest.fixture
def small(lab: Path) -> GuestShape:  # noqa: ARG001
    return shape_guest(Machine.load("2x1"), 256, 1 << 20)


def hangs(guest: Guest, process: "subprocess.Popen[bytes]") -> None:
    with pytest.raises(GuestError, match="the virtual machine hangs"):
        guest.run(LONG)
    with pytest.raises(GuestError, match="lost in an earlier run"):
        guest.run(LONG)
    os.kill(process.pid, signal.SIGKILL)  # leaving it would wait for it to power off


def test_by_what_its_kernel_says(
    small: GuestShape, tmp_path: Path, started: "list[subprocess.Popen[bytes]]"
) -> None:
    over = threading.Event()

    def say() -> None:
        with (tmp_path / "console").open("a") as console:
            console.write(SAID)

    def say_until_heard() -> None:  # what is said before the run begins is of the time before
        while not over.wait(0.1):
            say()

    with Guest(small, tmp_path, counted=False, patience=Patience(check_seconds=0.5)) as guest:
        say()  # and recovered
        assert guest.run(TRUE).exit_code == 0
        later = threading.Thread(target=say_until_heard)
        later.start()
        try:
            hangs(guest, started[0])
        finally:
            over.set()
            later.join()


def test_one_that_sleeps_lives_until_no_task_takes_its_turn(
    small: GuestShape, tmp_path: Path, started: "list[subprocess.Popen[bytes]]"
) -> None:
    """In one in which next to nothing happens tasks take their turns again and again, until it is stopped."""
    patience = Patience(check_seconds=3.0, most_missed_at_boot=Patience.most_missed)

    def stop_after_some_turns() -> None:
        pulse = Heartbeat(tmp_path, 2, True, Patience(most_missed=1))
        for _ in range(4):  # the first of them is nothing to compare with
            until(lambda: not pulse.has_stopped())
        patience.check_seconds = 0.2
        started[0].send_signal(signal.SIGSTOP)

    with Guest(small, tmp_path, patience=patience) as guest:
        watching = threading.Thread(target=stop_after_some_turns)
        watching.start()
        hangs(guest, started[0])
        watching.join()
        assert patience.check_seconds == 0.2


@pytest.mark.parametrize(
    ("stop_at", "number"),
    [(0, signal.SIGSTOP), (1, signal.SIGSTOP), (1, signal.SIGABRT)],
    ids=["hangs at its boot", "hangs at a run", "crashes at a run"],
)
def test_another_is_booted(
    lab: Path,  # noqa: ARG001
    started: "list[subprocess.Popen[bytes]]",
    monkeypatch: pytest.MonkeyPatch,
    stop_at: int,
    number: signal.Signals,
) -> None:
    """One hangs as it boots, or fails as it is to run; what was to be compared is run in the next."""
    said: list[str] = []
    patience = Patience()

    def hang() -> None:
        started[0].send_signal(number)
        patience.check_seconds = 0.2

    start = module.spawn

    def start_and_hang(*arguments: Any) -> "subprocess.Popen[bytes]":
        process = start(*arguments)
        if stop_at == 0 and len(started) == 1:
            hang()
        return process

    def say(text: str) -> None:
        said.append(text)
        if stop_at == 1 and text.startswith("default, run 1"):
            hang()
        if text.endswith("booting another"):
            patience.check_seconds = 10.0

    monkeypatch.setattr(module, "spawn", start_and_hang)
    request = Request(["/bin/true"], "2x1", memory="256M", patience=patience)
    result, verdicts = compare(request, "default", 1, ["default.local_share >= 0"], say)
    raise_for(result, verdicts)
    assert [run.exit_code for run in result.configs["default"].runs] == [0]
    assert sum(text.endswith("booting another") for text in said) == 1
    assert started[0].wait() == -(signal.SIGKILL if number == signal.SIGSTOP else number)
