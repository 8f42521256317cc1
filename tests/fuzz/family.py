"""A command that is watched from outside while it runs: its processes, what it writes, how it ends."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.outside import children, comm, state_of

MARK = "FUZZED_START"  # in the environment of all that a start begins, wherever it ends up
_LOOK_S = 0.001


@dataclass
class Family:
    """A command of its own process group, below us, with its files in `folder` and `temporary`.

    pids: all processes that were seen below it, itself among them; events: how many new processes, files and
    first words it has shown so far.
    """

    process: "subprocess.Popen[bytes]"
    watched: Sequence[Path]
    said: Sequence[Path]
    started: float = field(default_factory=time.monotonic)
    pids: set[int] = field(default_factory=set)
    _shown: set[str] = field(default_factory=set)
    _waited: dict[int, int] = field(default_factory=dict)

    @property
    def events(self) -> int:
        return len(self._shown)

    @property
    def seconds(self) -> float:
        """Since it was started."""
        return time.monotonic() - self.started

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def look(self) -> None:
        """See what it has begun since the last look."""
        below = children(self.process.pid)
        self.pids |= {self.process.pid, *below}
        self._shown |= {f"process {pid} {comm(pid)}" for pid in below}
        for folder in self.watched:
            for place, _, files in os.walk(folder):
                self._shown |= {os.path.join(place, name) for name in files}  # noqa: PTH118  (many a second)
        self._shown |= {str(file) for file in self.said if file.stat().st_size}

    def until(self, events: int, seconds: float) -> None:
        """Watch it until it has shown so many events, for so long at least, or has ended."""
        while not self.has_ended() and (self.events < events or self.seconds < seconds):
            self.look()
            time.sleep(_LOOK_S)

    def wait(self, patience: float) -> bool:
        """Whether it ended in this time, but for that in which it could have run and others had the cpus."""
        end = time.monotonic() + patience
        while not self.has_ended() and time.monotonic() < end + self.starved_s():
            self.look()
            time.sleep(5 * _LOOK_S)
        return self.has_ended()

    def starved_s(self) -> float:
        """How long its processes have waited for a cpu, one after the other, as the kernel counts it."""
        for pid in (self.process.pid, *children(self.process.pid)):
            self._waited[pid] = max(self._waited.get(pid, 0), waited_ns(pid))
        return sum(self._waited.values()) / 1e9

    def send(self, number: int, whom: str, chosen: float) -> bool:
        """Send a signal to the command, its group, or a `child` chosen by a number in [0, 1); whether it went

        Never to a pid that may be somebody else's by now: those of children are held while it is sent.
        """
        if self.has_ended():
            return False
        if whom == "child":
            return _send_to_child(self.process.pid, number, chosen)
        with suppress(ProcessLookupError):
            (os.kill if whom == "command" else os.killpg)(self.process.pid, number)
            return True
        return False

    def states(self) -> str:
        """What its processes do, for a message."""
        told = [
            f"{pid} {comm(pid)} {state_of(pid)}" for pid in (self.process.pid, *children(self.process.pid))
        ]
        return f"{', '.join(told)}; {self.starved_s():.0f} s of {self.seconds:.0f} without a cpu"

    def end(self) -> None:
        """Kill what is left of it."""
        for number in (signal.SIGCONT, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
        self.process.wait()


def _send_to_child(parent: int, number: int, chosen: float) -> bool:
    below = sorted(children(parent))
    if not below:
        return False
    with suppress(ProcessLookupError):
        held = os.pidfd_open(pid := below[int(chosen * len(below))])
        try:
            if pid in children(parent):
                signal.pidfd_send_signal(held, number)
                return True
        finally:
            os.close(held)
    return False


def waited_ns(pid: int) -> int:
    """How long a thread of this process waited for a cpu: of them the one that did longest."""
    found = [0]
    with suppress(FileNotFoundError):  # it may end while this looks
        for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with suppress(OSError):
                found.append(int(file.read_text().split()[1]))
    return max(found)


def marked_processes(mark: str) -> list[int]:
    """Processes, of whatever parent, that a start with this mark began and that still run."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for name in os.listdir("/proc"):  # noqa: PTH208
        with suppress(OSError):
            if name.isdecimal() and wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.append(int(name))
    return found
