"""What people see of the loop: a line that changes while it runs, and a summary at the end."""

import sys
from typing import TYPE_CHECKING, Any

from numaplan.launcher.online.kernel import PAGE_BYTES

if TYPE_CHECKING:
    from numaplan.launcher.online.loop import Loop, Tally
    from numaplan.launcher.online.observing import Looked


class Status:
    """Writes to stderr; the changing line is there only when that is a terminal and live is set."""

    def __init__(self, quiet: bool, live: bool = False) -> None:
        self._quiet = quiet
        self._live: Any = None
        if live and not quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.status import Status as Spinner

            self._live = Spinner("looking", console=Console(stderr=True))
            self._live.start()

    def say(self, text: str) -> None:
        """One line."""
        if not self._quiet:
            print(f"nlaunch: online: {text}", file=sys.stderr)

    def show(self, looked: "Looked", tally: "Tally") -> None:
        """The state after an interval."""
        if self._live is None:
            return
        threads = looked.observation.threads
        share = f"{tally.local[-1]:.0%} local" if tally.local else "no samples yet"
        seen = f"{threads.count} threads, {len(looked.fresh.pid):,} samples"
        self._live.update(f"{seen}, {share}, {tally.undone} undone; Ctrl-C ends it")

    def end(self) -> None:
        """No line any more."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def summary(name: str, loop: "Loop", restored: int) -> str:
    """One line about the whole run."""
    tally, hands = loop.tally, loop.hands
    parts = [
        f"{tally.intervals} intervals",
        f"{hands.threads_moved} thread moves",
        f"{hands.pages_moved:,} pages ({hands.pages_moved * PAGE_BYTES / 1e6:.1f} MB)",
    ]
    if tally.undone:
        parts.append(f"{tally.undone} undone")
    if tally.local:
        head, tail = tally.local[:2], tally.local[-3:]
        parts.append(f"local share of samples {sum(head) / len(head):.0%} → {sum(tail) / len(tail):.0%}")
    if tally.lost:
        parts.append(f"{tally.lost:,} events lost")
    if loop.hands.bindings.foreign:
        parts.append(f"{len(loop.hands.bindings.foreign)} threads left to who bound them meanwhile")
    if tally.refused:
        problem, count = tally.refused.most_common(1)[0]
        parts.append(f"{count} actions not done: {problem}")
    if restored:
        parts.append(f"{restored} threads got their first cpus back")
    if tally.ended:
        parts.append(tally.ended)
    return f"{name}: {', '.join(parts)}"
