"""Attaching, with a session that only says what it is asked for: whatever comes when, it ends tidily."""

import math
import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from numaplan.launcher.online import running
from numaplan.launcher.online.options import OnlineOptions
from numaplan.launcher.online.system import LocalSystem


@pytest.mark.parametrize("moment", ["start", "wait", "stop"])
def test_masks_are_given_back_whenever_ctrl_c_comes(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the loop has ended by itself, and only what it changed is to be undone."""
    done: list[str] = []

    class Session:
        def __init__(self, *_arguments: Any, **_options: Any) -> None: ...

        def start(self, _roots: Callable[[], Sequence[int]]) -> None:
            self._come_to("start")

        def wait(self) -> None:
            self._come_to("wait")

        def stop(self, restore: bool) -> None:
            assert restore
            self._come_to("stop")

        def _come_to(self, here: str) -> None:
            if here == moment:
                os.kill(os.getpid(), signal.SIGINT)
            done.append(here)

    monkeypatch.setattr(running, "OnlineSession", Session)
    assert running.attach_online(OnlineOptions("excl"), [os.getpid()]) == 128 + signal.SIGINT
    assert done[-1] == "stop"


@pytest.mark.parametrize("seconds", [1e300, math.inf])
def test_a_pause_may_be_longer_than_any_clock(seconds: float) -> None:
    class Ending(threading.Event):
        """Waits as one does, for what is there at once."""

        def wait(self, timeout: float | None = None) -> bool:
            return threading.Lock().acquire(timeout=-1 if timeout is None else timeout)

    assert LocalSystem().wait(Ending(), seconds)
