"""What was found, on a terminal: at most a screen, however many threads there are."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from numaplan.common import make_console

from ..find.finding import Finding
from ..find.findings import Answer
from ..find.view import View, Work
from ..find.words import percent, size

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

MOST = 6  # findings
ROWS = 12  # of the table: groups of threads of the same name and place


def show(view: View, answer: Answer, *, stderr: bool = False) -> None:
    """Print the findings, or why there are none, and where threads and memory are."""
    console = make_console(stderr=stderr)
    for renderable in renderables(view, answer):
        console.print(renderable, soft_wrap=isinstance(renderable, str))


def clear() -> None:
    """Begin again at the top of a terminal."""
    console: Console = make_console()
    if console.is_terminal:
        console.clear()


def renderables(view: View, answer: Answer) -> "Iterator[RenderableType]":
    """What `show` prints: lines, and a table."""
    yield summary(view)
    if answer.reason:
        matter = "NUMA does not matter here" if answer.sure else "Nothing wrong was seen"
        yield f"{matter}: {answer.reason}"
    for number, finding in enumerate(answer.findings[:MOST], start=1):
        yield from _finding(number, finding)
    if len(answer.findings) > MOST:
        yield f"and {len(answer.findings) - MOST} more findings that matter less (--json has all)"
    if view.works and len(view.machine.nodes) > 1:
        yield ""
        yield _table(view)
        yield _kernel(view)


def _finding(number: int, finding: Finding) -> Iterator[str]:
    yield f"{number}. {finding.what} [{finding.name}]"
    for line in finding.evidence:
        yield f"     {line}"
    yield f"   cost{' (measured)' if finding.measured else ''}: {finding.cost}"
    for place, command in enumerate(finding.cure):
        yield f"   {'to do: ' if place == 0 else '       '}{command}"


def _kernel(view: View) -> str:
    """What the kernel did meanwhile, on the whole machine."""
    names = {0: "off", 1: "on", 2: "on, for tiers"}
    faults = view.counted("numa_hint_faults") / view.seconds
    moved = view.counted("numa_pages_migrated") / view.seconds
    how = names.get(view.after.system.balancing or 0, "on")
    return f"AutoNUMA is {how}: {faults:.0f} hint faults and {moved:.0f} moved pages a second on the machine"


def _table(view: View) -> "Table":
    from rich.table import Table

    nodes = view.machine.node_ids
    few = nodes if len(nodes) <= 8 else nodes[:8]
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("busy threads, memory", overflow="ellipsis", no_wrap=True, max_width=36)
    for node in few:
        table.add_column(f"node {node}", justify="right", no_wrap=True)
    rows = list(_rows(view))
    for name, cells in rows[:ROWS]:
        table.add_row(name, *(cells.get(node, "") for node in few))
    if len(rows) > ROWS:
        table.add_row(f"and {len(rows) - ROWS} more")
    free = {node: size(view.free(node)) for node in nodes}
    table.add_row("free", *(free[node] for node in few))
    return table


def _rows(view: View) -> "Iterator[tuple[str, dict[int, str]]]":
    """A row for each group of threads of the same name, and one for each process's memory."""
    for work in sorted(view.works, key=_matters, reverse=True):
        process = work.process
        groups: dict[str, Counter[int]] = {}
        for busy in work.threads:
            groups.setdefault(_group(busy.thread.name), Counter())[busy.node] += 1
        for name, counts in sorted(groups.items(), key=lambda row: -row[1].total()):
            yield f"{process.pid} {name}", {node: f"{count} thr" for node, count in counts.items()}
        idle = len(process.threads) - len(work.threads)
        if not work.threads:
            yield f"{process.pid} {process.name}: {idle} idle", {}
        if work.bytes:
            yield f"{process.pid} memory", {node: size(count) for node, count in work.memory.items()}


def _matters(work: Work) -> tuple[float, int]:
    return work.ran, work.bytes


def _group(name: str) -> str:
    """`worker-17` and `worker-18` are `worker-*`."""
    bare = name.rstrip("0123456789")
    return f"{bare}*" if bare != name and bare else name


def summary(view: View) -> str:
    """One line of what was looked at."""
    threads = sum(len(work.process.threads) for work in view.works)
    ran = percent(sum(work.ran for work in view.works))
    count = len(view.works)
    what = f"process {view.works[0].process.pid}" if count == 1 else f"{count} processes"
    return f"{what}: {threads} threads, {len(view.busy)} busy, {ran} of a cpu over {view.seconds:.1f} s"
