"""Which running processes perf could not record, and why: its own words tell of privileges only."""

import os
import subprocess

import pytest

from numaplan.common import MachineLacksError, UsageError
from numaplan.profiler.backends.perf.running import check_processes


def test_one_that_ended() -> None:
    gone = subprocess.Popen(["true"])
    with pytest.raises(UsageError, match=f"process {gone.pid} ended"):  # not waited for yet: it is in /proc
        check_processes([gone.pid], "sys_perf_event_open() returned with 3 (No such process)")
    gone.wait()
    with pytest.raises(UsageError, match=f"process {gone.pid} ended"):
        check_processes([os.getpid(), gone.pid], "Permission denied")


def test_one_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(MachineLacksError, match=f"process {os.getpid()} is another user's"):
        check_processes([os.getpid()], "perf_event_paranoid")


def test_one_that_is_ours() -> None:
    check_processes([os.getpid()], "anything else")
