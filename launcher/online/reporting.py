"""What the loop reports: a journal for machines, a status line and a summary for people."""

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import IO, Any

import msgspec
import numpy as np

from numaplan.common import UsageError, counted, make_console, open_now, tell
from numaplan.mapper import MoveThread

from ..process.page_moves import PAGE_BYTES
from .actuator import ActionResult, Actuator
from .samples import Interval


@dataclass
class Tally:
    """What the loop did, for the summary."""

    intervals: int = 0
    undone: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    local_shares: list[float] = field(default_factory=list)
    ended: str = ""


class Journal:
    """Appends a JSON object to a file for each interval with its actions, as it happens.

    A disk that is full ends the journal, not the loop (`problem` then says why).
    """

    def __init__(self, path: str) -> None:
        """Raises UsageError when the file cannot be written; with "" nothing is written."""
        self.problem = ""
        self._file: IO[bytes] | None = None
        if path:
            try:
                self._file = open_now(path)  # closed by close()
            except OSError as error:
                hint = "name a file that can be written"
                raise UsageError(f"--journal {path}: {error.strerror}", hint) from error

    def write(self, **entry: Any) -> None:
        """One line; numbers that are not known become null."""
        if self._file is None:
            return
        try:
            self._file.write(msgspec.json.encode(entry, enc_hook=_plain) + b"\n")
            self._file.flush()
        except OSError as error:
            self.problem = error.strerror or "it cannot be written"
            self.close()

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self.problem = self.problem or error.strerror or "it cannot be written"


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's, which the encoder takes."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} in the journal")


def action_entry(one: ActionResult) -> dict[str, Any]:
    """What was done, for the journal."""
    action = one.action
    if isinstance(action, MoveThread):
        entry = {"move": "thread", "tid": action.tid, "node": action.node}
        entry |= {"cpu": action.cpu, "partner": action.partner}
    else:
        entry = {"move": "pages", "pid": action.pid, "node": action.node, "pages": len(action.pages)}
    entry |= {"moved": one.moved, "reason": action.reason}
    return entry | {"problem": one.problem} if one.problem else entry


class Status:
    """Writes to stderr; the changing line is there only when that is a terminal and live is set."""

    def __init__(self, quiet: bool, live: bool = False) -> None:
        self._quiet = quiet
        self._live: Any = None
        if live and not quiet and sys.stderr.isatty():
            from rich.status import Status as Spinner

            self._live = Spinner("observing", console=make_console(stderr=True))
            self._live.start()

    def say(self, text: str) -> None:
        """One line."""
        if not self._quiet:
            tell(f"nlaunch: online: {text}")

    def show(self, interval: Interval, tally: Tally) -> None:
        """The state after an interval."""
        if self._live is None:
            return
        threads = interval.observation.threads
        share = f"{tally.local_shares[-1]:.0%} local" if tally.local_shares else "no samples yet"
        counts = f"{counted(threads.count, 'thread')}, {counted(len(interval.samples.pid), 'sample')}"
        self._live.update(f"{counts}, {share}, {tally.undone} undone; Ctrl-C ends it")

    def end(self) -> None:
        """No line any more."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def summary(policy: str, tally: Tally, actuator: Actuator, restored: int) -> str:
    """One line about the whole run. restored: threads that got their first masks back."""
    parts = [
        counted(tally.intervals, "interval"),
        counted(actuator.threads_moved, "thread move"),
        f"{counted(actuator.pages_moved, 'page')} ({actuator.pages_moved * PAGE_BYTES / 1e6:.1f} MB)",
    ]
    if tally.undone:
        parts.append(f"{tally.undone} undone")
    if tally.local_shares:
        head, tail = tally.local_shares[:2], tally.local_shares[-3:]
        parts.append(f"local share of samples {sum(head) / len(head):.0%} → {sum(tail) / len(tail):.0%}")
    if tally.lost:
        parts.append(f"{counted(tally.lost, 'event')} lost")
    if actuator.bindings.foreign:
        foreign = len(actuator.bindings.foreign)
        them = "it" if foreign == 1 else "them"
        parts.append(f"{counted(foreign, 'thread')} left alone, as somebody else bound {them}")
    if tally.refused:
        problem, count = tally.refused.most_common(1)[0]
        parts.append(f"{counted(count, 'action')} not done: {problem}")
    if restored:
        parts.append(
            f"{counted(restored, 'thread')} got {'its' if restored == 1 else 'their'} original cpus back"
        )
    if tally.ended:
        parts.append(tally.ended)
    return f"{policy}: {', '.join(parts)}"
