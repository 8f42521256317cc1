"""Look at what runs, or at a program that is started for it, and show what was found."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaplan.common import (
    NumaplanError,
    check_output,
    find_program,
    print_json,
    run_program,
    tell,
    write_document,
)

from .look import look, nothing_seen, whole_machine
from .read.groups import with_children
from .read.snapshot import ROOT

if TYPE_CHECKING:
    from numaplan.machine import Machine

    from .find.findings import Answer
    from .find.view import View

_TOO_SHORT = "ended before it could be looked at"
FIRST_SECONDS = 0.2  # of the first look at a program that is started; the next ones are longer


class Shown(msgspec.Struct, frozen=True):
    """How to say what is found: as JSON, to a file of metrics too, for how long to look, whether again."""

    as_json: bool
    metrics: str
    seconds: float
    watch: bool

    def check(self, inputs: Sequence[str]) -> None:
        """Raises UsageError where it could not be written in the end; inputs: files not to write over."""
        if self.metrics:
            check_output(self.metrics, inputs)

    def write(self, view: "View", answer: "Answer") -> None:
        """Write the metrics, if they are wanted. Raises UsageError."""
        if self.metrics:
            from .show.metrics import metrics

            write_document(self.metrics, metrics(view, answer))

    def show(self, view: "View", answer: "Answer", *, apart: bool = False) -> None:
        """Say it; apart: on stderr, as stdout is a program's."""
        if self.as_json:
            from .show.document import document

            print_json(document(view, answer))
            return
        from .show.terminal import clear, show

        if self.watch and not apart:
            clear()
        show(view, answer, stderr=apart, fit=self.watch and not apart)


def look_at(members: Callable[[], Sequence[int]], shown: Shown) -> int:
    """Look at running processes, once or until Ctrl-C; returns the exit code. Raises NumaplanError."""
    machine = whole_machine()
    while True:
        found = look(machine, members, shown.seconds, time.sleep)
        shown.write(*found)
        shown.show(*found)
        if not shown.watch:
            return 0


def look_at_program(argv: Sequence[str], shown: Shown) -> int:
    """Run a program, look at it while it runs, and return its exit code.

    The last look that was possible is shown when it has ended, so that what both say is not mixed. With JSON
    on stdout, what the program writes there goes to stderr. Raises NumaplanError, before anything is started,
    where there is no such program or the machine cannot be read.
    """
    find_program(argv)
    attendant = _Attendant(whole_machine(), shown)
    try:
        code = run_program(
            argv,
            os.environ,
            started=attendant.start,
            before_exec=_stdout_to_stderr if shown.as_json else None,
            pass_interrupts=True,
        )
    finally:
        attendant.stop()
    if attendant.last:
        shown.show(*attendant.last, apart=True)
    elif shown.as_json:
        shown.show(*nothing_seen(attendant.machine, f"it {_TOO_SHORT}"))
    else:
        tell(f"numaplan look: {Path(argv[0]).name} {_TOO_SHORT}")
    if attendant.unwritten:
        tell(f"numaplan look: warning: {attendant.unwritten}")
    return code


def _stdout_to_stderr() -> None:
    os.dup2(2, 1)


class _Attendant:
    """Looks at a program in the background, longer each time, until it ends or has been seen for long enough.

    last: the last look that was not cut short; unwritten: why its metrics could not be written.
    """

    def __init__(self, machine: "Machine", shown: Shown) -> None:
        self.machine = machine
        self._shown = shown
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.last: tuple[View, Answer] | None = None
        self.unwritten: NumaplanError | None = None

    def start(self, pid: int) -> None:
        """It runs."""
        self._thread = threading.Thread(target=self._run, args=(pid,), name="look", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """It has ended."""
        self._ended.set()
        if self._thread:
            self._thread.join()

    def _run(self, pid: int) -> None:
        seconds = min(FIRST_SECONDS, self._shown.seconds)
        while not self._ended.is_set():
            with suppress(NumaplanError):
                self.last = look(self.machine, lambda: with_children(ROOT, [pid]), seconds, self._ended.wait)
                self._write(*self.last)
            if seconds >= self._shown.seconds and not self._shown.watch:
                return
            seconds = min(2 * seconds, self._shown.seconds)

    def _write(self, view: "View", answer: "Answer") -> None:
        self.unwritten = None
        try:
            self._shown.write(view, answer)
        except NumaplanError as error:
            self.unwritten = error
