"""A guest that hangs is given up with a word, not waited for; one that sleeps is not."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from numaplan.launcher.lab import guest as module
from numaplan.launcher.lab import health
from numaplan.launcher.lab.comparing import compare
from numaplan.launcher.lab.guest import Guest, GuestError
from numaplan.launcher.lab.guest_machine import shape_guest
from numaplan.launcher.lab.job import Job
from numaplan.launcher.lab.qemu import spawn
from numaplan.launcher.lab.session import Request
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
    def say() -> None:
        with (tmp_path / "console").open("a") as console:
            console.write(SAID)

    with small_guest(tmp_path, counted=False) as guest:
        say()  # and recovered
        assert guest.run(Job("/bin/true", ["true"], {}, "/")).exit_code == 0
        monkeypatch.setattr(module, "ASKED_EVERY", 0.5)
        later = threading.Timer(2, say)
        later.start()
        hangs(guest)
        later.join()


def test_no_task_takes_its_turn(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    with small_guest(tmp_path, counted=True) as guest:
        monkeypatch.setattr(module, "ASKED_EVERY", 0.2)
        os.kill(process_of(guest), signal.SIGSTOP)
        hangs(guest)


def test_all_sleep(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """One in which next to nothing happens for longer than a hang is waited for, here nine seconds."""
    with small_guest(tmp_path, counted=True) as guest:
        monkeypatch.setattr(module, "ASKED_EVERY", 3.0)
        monkeypatch.setattr(health, "BEATS", 3)
        assert guest.run(Job("/bin/sleep", ["sleep", "21"], {}, "/")).exit_code == 0


@pytest.mark.parametrize("stop_at", [0, 1], ids=["boot", "run"])
def test_another_is_booted(lab: Path, monkeypatch: pytest.MonkeyPatch, stop_at: int) -> None:  # noqa: ARG001
    """One is stopped as it boots or as it is to run; what was to be compared is run in the next."""
    started: list[subprocess.Popen[bytes]] = []
    said: list[str] = []

    def hang() -> None:
        started[0].send_signal(signal.SIGSTOP)
        monkeypatch.setattr(module, "ASKED_EVERY", 0.2)

    def start(*arguments: Any) -> "subprocess.Popen[bytes]":
        started.append(spawn(*arguments))
        if stop_at == 0 and len(started) == 1:
            hang()
        return started[-1]

    def say(text: str) -> None:
        said.append(text)
        if stop_at == 1 and text.startswith("default, run 1"):
            hang()
        if text.endswith("booting another"):
            monkeypatch.setattr(module, "ASKED_EVERY", 10.0)

    monkeypatch.setattr(module, "spawn", start)
    result, _ = compare(Request(["/bin/true"], "2x1", memory="256M"), "default", 1, [], say)
    assert [run.exit_code for run in result.configs["default"].runs] == [0]
    assert sum(text.endswith("booting another") for text in said) == 1
    assert started[0].wait() == -signal.SIGKILL
