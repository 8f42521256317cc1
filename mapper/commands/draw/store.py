"""The store as a table on a terminal."""

from collections.abc import Sequence

from rich.table import Table

from numaplan.common import make_console

from ...store.listing import StoredRow, moment

_BUILD = 8  # characters of a build that tell it from others
_WIDE = 110  # columns of a terminal on which nothing need be folded


def show_rows(rows: Sequence[StoredRow]) -> None:
    """A table, and what is wrong with what is refused."""
    console = make_console()
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    for name in ("build", "class"):
        table.add_column(name, no_wrap=name == "build", overflow="fold")
    table.add_column("program", overflow="ellipsis", no_wrap=True, ratio=1)
    table.add_column("stored", no_wrap=True)
    table.add_column("applied", justify="right")
    table.add_column("last time", overflow="fold", max_width=None if console.width >= _WIDE else 12)
    for row in rows:
        words = row.parts[0][:_BUILD], row.parts[2], row.program or "–"
        table.add_row(*words, _day(row.stored), str(row.note.applied or "–"), _last(row))
    console.print(table)
    for row in rows:
        if row.refused:
            console.print(f"refused: {row.refused}", soft_wrap=True)


def _last(row: StoredRow) -> str:
    if row.refused:
        return "refused"
    if row.note.stale:
        return f"stale since {_day(row.note.unfit_since)}"
    use = row.note.use
    if not use:
        return "–"
    (right, threads), (seen, regions) = use.threads, use.regions
    counts = [f"{right}/{threads} threads"] * bool(threads) + [f"{seen}/{regions} regions"] * bool(regions)
    return ", ".join(counts) or "nothing to place"


def _day(seconds: float) -> str:
    return moment(seconds)[:10] or "–"
