"""How far a command is, as a bar on the terminal that stderr is; nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numaplan.common import make_console


@contextmanager
def shown_progress() -> Iterator[Callable[[str, float], None]]:
    """Yields what is told what is done, and the share of it that is (below 0: not known)."""
    if not sys.stderr.isatty():
        yield lambda _what, _share: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(20), TimeElapsedColumn())
    with Progress(*columns, console=make_console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def advance(what: str, share: float) -> None:
            bar.update(task, description=what, total=None if share < 0 else 1.0, completed=max(share, 0.0))

        yield advance
