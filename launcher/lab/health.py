"""Whether a guest can still end: QEMU's emulation loses a cpu's timer once in a hundred long runs or so.

Seen with QEMU 7.2: the interrupt is never delivered, the other cpus spin, and no process runs any more. The
kernel notices that its own thread was not woken, and says for how long.
"""

import re
from contextlib import suppress
from pathlib import Path

ASKED_EVERY = 10.0  # seconds
_PATIENCE = 15_000  # jiffies, of which a second has 250: a crowded host delays a timer by seconds at most
_NOT_WOKEN = re.compile(rb"timer wakeup didn't happen for (\d{1,12}) jiffies")


def lost_its_timer(console: Path) -> bool:
    """By what the guest's kernel wrote on its console."""
    with suppress(OSError):
        return any(int(jiffies) > _PATIENCE for jiffies in _NOT_WOKEN.findall(console.read_bytes()))
    return False
