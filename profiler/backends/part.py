"""The part of a run that is recorded, and the switch that begins and ends it while the program runs."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from queue import Empty, SimpleQueue
from signal import SIGUSR2

from numaplan.common import UsageError

from .on_signal import act_by, program_ended


@dataclass(frozen=True)
class RecordedPart:
    """The defaults ask for all of it.

    skip_seconds, skip_accesses: to leave out at the start; take_seconds, take_accesses: to record then (0: to
    the end); on_signal: SIGUSR2 to the recorder starts and stops recording; marked: only what the program
    marks by numaplan_begin() and numaplan_end().
    """

    skip_seconds: float = 0.0
    skip_accesses: int = 0
    take_seconds: float = 0.0
    take_accesses: int = 0
    on_signal: bool = False
    marked: bool = False

    @property
    def by_switch(self) -> bool:
        """Whether a `Switch` has something to do."""
        return bool(self.skip_seconds or self.take_seconds or self.on_signal)

    @property
    def by_part(self) -> bool:
        """Whether it is less than all."""
        return self != RecordedPart()

    def facts(self) -> dict[str, str]:
        """The same for the trace's meta table."""
        given = {
            "skipped": _amount(self.skip_seconds, self.skip_accesses),
            "taken": _amount(self.take_seconds, self.take_accesses),
            "on_signal": "yes" if self.on_signal else "",
            "marked": "yes" if self.marked else "",
        }
        return {name: value for name, value in given.items() if value}

    def nothing(self, program: str, seconds: float) -> UsageError:
        """What to raise when the part never began."""
        if self.marked:
            why, hint = "nothing was marked", "call numaplan_begin() of numaplan.h, or leave --marked out"
        elif self.on_signal:
            why, hint = (
                "no SIGUSR2 came while it worked",
                "send it to nprof, not to the program: kill -USR2 PID",
            )
        elif self.skip_seconds or self.skip_accesses:
            why, hint = "it ended before the part to record began", "give a smaller --skip"
        else:
            why, hint = "the part to record was over before it began", "take more of it"
        return UsageError(f"{program}: no sample was recorded in {seconds:.1f} s: {why}", hint)


def _amount(seconds: float, accesses: int) -> str:
    return f"{accesses} accesses" if accesses else f"{seconds:g} s" if seconds else ""


class Turn(IntEnum):
    """What the switch says; the numbers are those of native/emulate/part.c."""

    NOT_NOW = 0
    NOW = 1
    NEVER_MORE = 2


class Switch:
    """Turns recording on and off, by time and by signals, from a thread of its own between begin and end.

    turn: does it. spans: [from, to) by CLOCK_MONOTONIC of when it was on.
    """

    def __init__(self, part: RecordedPart, turn: Callable[[Turn], None]) -> None:
        self._part, self._turn = part, turn
        self._events: SimpleQueue[bool] = SimpleQueue()  # a signal; False: the program has ended
        # A daemon, as the others here: a signal that comes while it starts must not leave us waiting for it.
        self._thread = threading.Thread(target=self._run, name="recording switch", daemon=True)
        self._settled = threading.Event()
        self._on = False
        self.spans: list[tuple[int, int]] = []
        if part.on_signal:
            act_by(self._signal)

    @property
    def signals(self) -> dict[int, Callable[[], None]]:
        """What to do with signals to us that are not for the program."""
        return {SIGUSR2: self._signal} if self._part.on_signal else {}

    def _signal(self) -> None:
        self._events.put(True)

    def begin(self) -> None:
        """The program runs, or is about to: what came before is acted on when this returns."""
        self._thread.start()
        self._settled.wait()

    def end(self) -> None:
        """The program has ended."""
        if self._part.on_signal:
            program_ended()
        self._events.put(False)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._until_end()
        finally:
            self._settled.set()

    def _until_end(self) -> None:
        skip = self._part.skip_seconds
        change: float | None = None if self._part.on_signal else time.monotonic() + skip
        taken = False
        while True:
            if self._events.empty():
                self._settled.set()
            try:
                left = None if change is None else max(0.0, change - time.monotonic())
                goes_on = self._events.get(timeout=left)
            except Empty:
                taken = bool(self.spans)
            else:
                if not goes_on:
                    break
                if taken:
                    continue
            first = not self.spans
            self._set(Turn.NEVER_MORE if taken else Turn.NOT_NOW if self._on else Turn.NOW)
            if taken or not (first or change):
                change = None
            elif first:
                take = self._part.take_seconds
                change = time.monotonic() + take if take else None
        if self._on:
            self._close()

    def _set(self, turn: Turn) -> None:
        if turn is Turn.NOW:
            self.spans.append((time.monotonic_ns(), -1))
            self._on = True
            self._turn(turn)
        else:
            self._turn(turn)
            if self._on:
                self._close()

    def _close(self) -> None:
        self.spans[-1] = (self.spans[-1][0], time.monotonic_ns())
        self._on = False
