"""Where busy threads and memory are, as a table that fits a terminal, however many there are."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..find.view import View, Work
from ..find.words import size

if TYPE_CHECKING:
    from rich.table import Table

MOST_GROUPS = 4  # of a process's threads, by name
MOST_NAME = 36  # columns
# What differs between threads that do the same: a number, or a word in hexadecimal.
_NUMBER = re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{4,}\b|[0-9]+")

Row = tuple[str, Mapping[int, str]]


def placement_table(view: View, width: int, rows: int) -> "Table":
    """A row for each group of threads of the same name and each process's memory; a row for each node where
    these do not fit as columns. rows: at most so many, and two more.
    """
    nodes = view.machine.node_ids
    found = _rows(view, rows)
    free = {node: size(view.free(node)) for node in nodes}
    found.append(("free", free))
    cells = max(len(text) for _, row in found for text in [*row.values(), f"node {max(nodes)}"])
    name = min(MOST_NAME, max(len(name) for name, _ in found))
    if max(name, 20) + (cells + 2) * len(nodes) > width:
        return _by_node(view, rows)
    table = _empty("busy threads, memory", *(f"node {node}" for node in nodes))
    for name_of_row, row in found:
        table.add_row(name_of_row, *(row.get(node, "") for node in nodes))
    return table


def _empty(first: str, *others: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column(first, overflow="ellipsis", no_wrap=True, max_width=MOST_NAME)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _by_node(view: View, rows: int) -> "Table":
    """A row for each node, and one for all that would be too many."""
    threads = Counter(busy.node for work in view.works for busy in work.threads)
    memory: Counter[int] = Counter()
    for work in view.works:
        memory.update(work.memory)
    order = sorted(view.machine.node_ids, key=lambda node: (-threads[node], -memory[node], node))
    shown = order if len(order) <= rows + 1 else order[:rows]
    lines = [(f"node {node}", [node]) for node in sorted(shown)]
    if rest := order[len(shown) :]:
        lines.append((f"{len(rest)} more nodes", rest))
    table = _empty("", "busy threads", "memory", "free")
    for name, nodes in lines:
        free = sum(view.free(node) for node in nodes)
        counts = sum(threads[node] for node in nodes), sum(memory[node] for node in nodes)
        table.add_row(name, str(counts[0]), size(counts[1]), size(free))
    return table


def _rows(view: View, most: int) -> list[Row]:
    """Those of the processes that matter most, and two for all the others together."""
    works = sorted(view.works, key=lambda work: (work.ran, work.bytes), reverse=True)
    found: list[Row] = []
    for number, work in enumerate(works):
        rows = list(_of_process(work))
        if found and len(found) + len(rows) > most:
            rest = works[number:]
            name = f"{len(rest)} more processes"
            return [*found, *_together(name, [busy.node for one in rest for busy in one.threads], rest)]
        found += rows
    return found


def _of_process(work: Work) -> Iterator[Row]:
    """A row for each group of threads of the same name, and one for the memory."""
    process = work.process
    groups: dict[str, list[int]] = {}
    names: dict[str, set[str]] = {}
    for busy in work.threads:
        group = _NUMBER.sub("*", busy.thread.name)
        groups.setdefault(group, []).append(busy.node)
        names.setdefault(group, set()).add(busy.thread.name)
    order = sorted(groups, key=lambda group: -len(groups[group]))
    shown = order if len(order) <= MOST_GROUPS + 1 else order[:MOST_GROUPS]
    for group in shown:
        name = group if len(names[group]) > 1 else names[group].pop()
        yield f"{process.pid} {name}", _counted(groups[group])
    if rest := order[len(shown) :]:
        yield (
            f"{process.pid} {len(rest)} more names",
            _counted([at for group in rest for at in groups[group]]),
        )
    if not work.threads:
        yield f"{process.pid} {process.name}: {len(process.threads)} idle", {}
    if work.bytes:
        yield f"{process.pid} memory", {node: size(count) for node, count in work.memory.items()}


def _together(name: str, nodes: Sequence[int], works: Sequence[Work]) -> Iterator[Row]:
    yield name, _counted(nodes)
    memory: Counter[int] = Counter()
    for work in works:
        memory.update(work.memory)
    if memory.total():
        yield "their memory", {node: size(count) for node, count in memory.items() if count}


def _counted(nodes: Sequence[int]) -> dict[int, str]:
    return {node: f"{count} thr" for node, count in Counter(nodes).items()}
