"""A guest whose timer died is given up with a word, not waited for."""

from pathlib import Path

import pytest

from numaplan.launcher.lab import guest as module
from numaplan.launcher.lab.guest import Guest, GuestError, Job
from numaplan.launcher.lab.guest_machine import shape_guest
from numaplan.profiler.machine import Machine

SAID = "rcu: rcu_preempt kthread timer wakeup didn't happen for 21012 jiffies! g22981\n"


def test_is_given_up(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    monkeypatch.setattr(module, "ASKED_EVERY", 0.5)
    with (
        pytest.raises(GuestError, match="a timer of the virtual machine died"),
        Guest(shape_guest(Machine.load("2x1"), 256, 1 << 20), tmp_path, counted=False) as guest,
    ):
        with (tmp_path / "console").open("a") as console:
            console.write(SAID)
        guest.run(Job("/bin/sleep", ["sleep", "600"], {}, "/"))
