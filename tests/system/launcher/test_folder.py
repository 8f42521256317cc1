"""The folder of a launch is taken away whoever is killed, and whenever."""

import os
import select
import signal
import subprocess
from pathlib import Path

import pytest

from numaplan.common.interrupts import asked_to_end
from numaplan.launcher.enforce import folder

pytestmark = pytest.mark.system


def test_interrupted_while_who_makes_it_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    start = folder.start_tracer

    def killed(*arguments: str) -> "subprocess.Popen[bytes]":
        keeper = start(*arguments)
        os.kill(os.getpid(), signal.SIGINT)
        select.select([keeper.stdout], [], [])  # it has told what it made
        keeper.kill()
        return keeper

    monkeypatch.setattr(folder, "start_tracer", killed)
    asked: list[int] = []
    with pytest.raises(KeyboardInterrupt), asked_to_end(asked), folder.launch_folder({}):
        pass
    assert asked == [signal.SIGINT]
    assert not list(tmp_path.iterdir())
