"""A guest that hangs is given up with a word, not waited for; one that sleeps is not."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from numaplan.launcher.lab import guest as module
from numaplan.launcher.lab import health
from numaplan.launcher.lab.guest import Guest, GuestError
from numaplan.launcher.lab.guest_machine import shape_guest
from numaplan.launcher.lab.job import Job
from numaplan.profiler.machine import Machine

pytestmark = pytest.mark.lab
SAID = "rcu: rcu_preempt kthread timer wakeup didn't happen for 21012 jiffies! g22981\n"
LONG = Job("/bin/sleep", ["sleep", "600"], {}, "/")


@contextmanager
def small_guest(folder: Path, counted: bool) -> Iterator[Guest]:
    with Guest(shape_guest(Machine.load("2x1"), 256, 1 << 20), folder, counted) as guest:
        yield guest


def hangs(guest: Guest) -> None:
    with pytest.raises(GuestError, match="the virtual machine hangs"):
        guest.run(LONG)
    with pytest.raises(GuestError, match="lost in an earlier run"):
        guest.run(LONG)
    os.kill(process_of(guest), signal.SIGKILL)  # leaving it would wait for it to power off


def process_of(guest: Guest) -> int:
    assert guest._process is not None
    return guest._process.pid


def test_by_what_its_kernel_says(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    monkeypatch.setattr(module, "ASKED_EVERY", 0.5)
    with small_guest(tmp_path, counted=False) as guest:
        with (tmp_path / "console").open("a") as console:
            console.write(SAID)
        hangs(guest)


def test_no_task_takes_its_turn(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    with small_guest(tmp_path, counted=True) as guest:
        monkeypatch.setattr(module, "ASKED_EVERY", 0.2)
        os.kill(process_of(guest), signal.SIGSTOP)
        hangs(guest)


def test_all_sleep(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """Nothing happens in such a guest but that the agent wakes; else it would be given up after 9 s."""
    with small_guest(tmp_path, counted=True) as guest:
        monkeypatch.setattr(module, "ASKED_EVERY", 3.0)
        monkeypatch.setattr(health, "BEATS", 3)
        assert guest.run(Job("/bin/sleep", ["sleep", "21"], {}, "/")).exit_code == 0
