"""The folder of a launch is taken away whoever is killed, and whenever."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from numaplan.common.processes.interrupts import asked_to_end
from numaplan.launcher.enforce import folder
from numaplan.launcher.enforce.tracer import start_tracer

pytestmark = pytest.mark.system


class Killed:
    """A process that is killed when it has told what it made, while we are interrupted."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self.stdin, self.stdout, self.wait = process.stdin, self, process.wait

    def read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        found = self._process.stdout.read(size)
        self._process.kill()
        self._process.wait()
        os.kill(os.getpid(), signal.SIGINT)
        return found

    def close(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.close()


def test_interrupted_while_who_makes_it_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(folder, "start_tracer", lambda *words: Killed(start_tracer(*words)))
    asked: list[int] = []
    with pytest.raises(KeyboardInterrupt), asked_to_end(asked), folder.launch_folder({}):
        pass
    assert asked == [signal.SIGINT]
    assert not list(tmp_path.iterdir())
