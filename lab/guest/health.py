"""Whether a guest can still end.

QEMU 7.2 can keep a stale translation of kernel code that changes: cpus go round in one instruction, no
process runs, and the guest may be silent. Tasks then no longer take turns, which the plugin counts; in a
guest that lives they do, as the agent wakes every few seconds. Where other cpus go on, the kernel notices
after a while that its own threads do not run, and says for how long.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from struct import unpack_from

_STARVED_FOR = 15_000  # jiffies, of which a second has 250
_STARVED = re.compile(rb"(?:timer wakeup didn't happen|kthread starved) for (\d{1,12}) jiffies")
HEAD_BYTES, RING_BYTES, _SWITCHES = 64, 128, 16  #: lab/native/plugin/samples.h


@dataclass
class Patience:
    """How often a guest is asked, and how often in vain before it is given up."""

    check_seconds: float = 10.0
    most_missed: int = 9  # a crowded host delays the guest by seconds at most
    most_missed_at_boot: int = 3  # while it boots, when there always is something to do


class Heartbeat:
    """What shows that a guest of so many cpus lives.

    folder: the guest's; counted: whether the plugin is there. `booted` is to be set when it is.
    """

    def __init__(self, folder: Path, cpus: int, counted: bool, patience: Patience) -> None:
        self.patience = patience
        self._console = folder / "console"
        self._samples = folder / "samples" if counted else None
        self._bytes = HEAD_BYTES + cpus * RING_BYTES
        self.booted = False
        self._console_read = 0  # bytes of the console: what they tell of is over
        self._switches, self._missed = -1, 0  # when last asked, and how often since they changed

    def reset(self) -> None:
        """Nothing was expected of the guest until now."""
        self._switches, self._missed = -1, 0
        with suppress(OSError):
            self._console_read = self._console.stat().st_size

    def has_stopped(self) -> bool:
        """To be asked every `patience.check_seconds` seconds while something is expected of the guest."""
        return self._no_task_switches() or self._starved()

    def _no_task_switches(self) -> bool:
        if self._samples is None:
            return False
        with self._samples.open("rb") as samples:
            head = samples.read(self._bytes)
        places = range(HEAD_BYTES + _SWITCHES, len(head), RING_BYTES)
        switches = sum(unpack_from("<Q", head, at)[0] for at in places)
        self._missed = self._missed + 1 if switches == self._switches else 0
        self._switches = switches
        booting = switches and not self.booted
        return self._missed >= (self.patience.most_missed_at_boot if booting else self.patience.most_missed)

    def _starved(self) -> bool:
        with suppress(OSError):
            return any(
                int(jiffies) > _STARVED_FOR
                for jiffies in _STARVED.findall(self._console.read_bytes()[self._console_read :])
            )
        return False
