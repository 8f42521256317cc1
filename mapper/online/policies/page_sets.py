"""Pages in bulk: sets keyed by process and page number, and the actions that move them."""

import numpy as np

from ..actions import MovePages
from ..observation import Ints, Observation

_SHIFT = 40  # bits of a page number: 2^52 bytes of address space, above what any Linux gives a process
NUMBER_END = 1 << _SHIFT


def page_keys(process: Ints, number: Ints) -> Ints:
    """(n,) one sortable key for a process row and a page number."""
    keys: Ints = (process.astype(np.int64) << _SHIFT) | number
    return keys


def split_keys(keys: Ints) -> tuple[Ints, Ints]:
    """Process rows and page numbers of keys."""
    return keys >> _SHIFT, keys & ((1 << _SHIFT) - 1)


def find_rows(sorted_keys: Ints, keys: Ints) -> Ints:
    """(n,) where each key stands in `sorted_keys`, -1 where it does not."""
    if not len(sorted_keys):
        return np.full(len(keys), -1, dtype=np.int64)
    places = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.where(sorted_keys[places] == keys, places, -1)


def move_actions(observation: Observation, keys: Ints, nodes: Ints, reason: str) -> tuple[MovePages, ...]:
    """One action a process and destination, for pages (keys) not known to be there already.

    nodes: (n,) rows of destinations, for those without memory the nearest that has. A page goes where it
    stands first.
    """
    keys, first = np.unique(keys, return_index=True)
    nodes, pages = observation.machine.memory_for[nodes[first]], observation.pages
    rows = find_rows(page_keys(pages.process, pages.number), keys)
    going = (rows < 0) | (pages.node[rows] != nodes)
    keys, nodes = keys[going], nodes[going]
    if not len(keys):
        return ()
    process, number = split_keys(keys)
    view = observation.machine
    groups = process * view.nodes + nodes
    order = np.argsort(groups, kind="stable")
    cuts = np.flatnonzero(np.diff(groups[order])) + 1
    return tuple(
        MovePages(
            pid=int(observation.processes.pid[process[rows[0]]]),
            pages=number[rows],
            node=int(view.node_ids[nodes[rows[0]]]),
            reason=reason,
        )
        for rows in np.split(order, cuts)
    )
