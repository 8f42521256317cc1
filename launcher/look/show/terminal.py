"""What was found, on a terminal: at most a screen, however many threads there are."""

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from numaplan.common import counted, make_console

from ..find.finding import Finding
from ..find.findings import Answer
from ..find.view import View
from ..find.words import percent
from .table import placement_table

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

MOST = 6  # findings
MOST_COMMANDS = 4  # of one
ROWS = 12  # of the table
LEAST_ROWS = 6
AROUND = 7  # lines, with those for what has no room
WIDTH = 120  # of a table that goes to a file


def show(view: View, answer: Answer, *, stderr: bool = False, fit: bool = False) -> None:
    """Print the findings, or why there are none, and where threads and memory are.

    fit: in what the terminal shows at once, as what is above it would not be seen.
    """
    console: Console = make_console(stderr=stderr)
    height = console.height - 1 if fit and console.is_terminal else None
    width = console.width if console.is_terminal else None
    if width is None:
        console.width = WIDTH
    for renderable in renderables(view, answer, width=width, height=height):
        console.print(renderable, soft_wrap=isinstance(renderable, str))


def clear() -> None:
    """Begin again at the top of a terminal."""
    console: Console = make_console()
    if console.is_terminal:
        console.clear()


def renderables(
    view: View, answer: Answer, *, width: int | None = None, height: int | None = None
) -> "Iterator[RenderableType]":
    """What `show` prints: lines, and a table. width: of a terminal, whose lines end with a word; height:
    lines that are seen; the first finding is told whole even so."""
    lines = [summary(view)]
    if answer.reason:
        matter = "NUMA does not matter here" if answer.sure else "Nothing wrong was seen"
        lines.append(f"{matter}: {answer.reason}")
    head = [part for line in lines for part in _wrapped(line, width)]
    placed = bool(view.works) and len(view.machine.nodes) > 1
    room = None if height is None else height - len(head) - (AROUND + LEAST_ROWS if placed else 1)
    told = 0
    for finding in answer.findings[:MOST]:
        block = [part for line in _finding(told + 1, finding) for part in _wrapped(line, width)]
        if room is not None:
            lines_shown = sum(-(-len(line) // (width or 80)) for line in block)
            if told and lines_shown > room:
                break
            room -= lines_shown
        head += block
        told += 1
    yield from head
    if more := len(answer.findings) - told:
        matter = "findings that matter" if more > 1 else "finding that matters"
        yield f"and {more} more {matter} less (--json has all)"
    if placed:
        yield ""
        rows = ROWS if room is None else min(ROWS, max(0, room) + LEAST_ROWS)
        yield placement_table(view, width or WIDTH, rows)
        yield from _wrapped(_kernel(view), width)


def _wrapped(line: str, width: int | None) -> list[str]:
    """Lines that end with a word; a command, which is to be copied, stays one."""
    if width is None or len(line) <= width or isinstance(line, _Command):
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


class _Command(str):
    """A line with a command in it."""


def _finding(number: int, finding: Finding) -> Iterator[str]:
    yield f"{number}. {finding.what} [{finding.name}]"
    for line in finding.evidence:
        yield f"     {line}"
    yield f"   cost{' (measured)' if finding.measured else ''}: {finding.cost}"
    for place, command in enumerate(finding.cure[:MOST_COMMANDS]):
        yield _Command(f"   {'to do: ' if place == 0 else '       '}{command}")
    if (more := len(finding.cure) - MOST_COMMANDS) > 0:
        yield f"          and {more} more command{'s' * (more > 1)} (--json has all)"


def _kernel(view: View) -> str:
    """What the kernel did meanwhile, on the whole machine."""
    names = {0: "off", 1: "on", 2: "on, for tiers"}
    faults = view.counted("numa_hint_faults") / view.seconds
    moved = view.counted("numa_pages_migrated") / view.seconds
    how = names.get(view.after.system.balancing or 0, "on")
    return f"AutoNUMA is {how}: {faults:.0f} hint faults and {moved:.0f} moved pages a second on the machine"


def summary(view: View) -> str:
    """One line of what was looked at."""
    threads = counted(sum(len(work.process.threads) for work in view.works), "thread")
    ran = percent(sum(work.ran for work in view.works))
    count = len(view.works)
    what = f"process {view.works[0].process.pid}" if count == 1 else f"{count} processes"
    return f"{what}: {threads}, {len(view.busy):,} busy, {ran} of a cpu over {view.seconds:.1f} s"
