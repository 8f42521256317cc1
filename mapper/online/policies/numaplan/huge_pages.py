"""Huge pages, as they show: small pages that were sent to several nodes, and went to one of them together.

Nothing tells a policy of them, and whoever moves a part of one moves all of it.
"""

from typing import NamedTuple

import numpy as np

from ...observation import Flags, Ints, Observation
from ..page_sets import find_rows, page_keys, split_keys
from .knowledge import Sharing, Uses

_SMALL_BITS = 9
SMALL_PAGES = 1 << _SMALL_BITS  # in a huge one
NONE = np.empty(0, dtype=np.int64)


class Sent(NamedTuple):
    """(n,) pages sent away: keys (of pid and number), node rows where they were and where they were sent."""

    keys: Ints = NONE
    here: Ints = NONE
    goal: Ints = NONE


def sent_pages(observation: Observation, sharing: Sharing, goal: Ints) -> Sent:
    """Those that go elsewhere than they are. goal: (M,) node rows of the sharing's pages."""
    away = (goal != sharing.node) & (goal >= 0) & (sharing.node >= 0)
    return Sent(_by_pid(observation, sharing)[away], sharing.node[away], goal[away])


def huge_pages(sent: Sent, observation: Observation) -> Ints:
    """The huge pages that show, by key: one is on one node now, of which a part neither stayed nor went where
    it was sent.
    """
    pages = observation.pages
    keys = page_keys(observation.processes.pid[pages.process], pages.number)
    order = np.argsort(keys)
    keys, node = keys[order], pages.node[order]
    rows = find_rows(keys, sent.keys)
    now = np.append(node, -1)[rows]
    strayed = (now >= 0) & (now != sent.goal) & (now != sent.here)
    found = np.unique(sent.keys[strayed] >> _SMALL_BITS)
    units, known = keys >> _SMALL_BITS, node >= 0
    least, most = (
        np.array([pick(node[known & (units == unit)]) for unit in found.tolist()], dtype=np.int64)
        for pick in (np.min, np.max)
    )
    huge: Ints = found[least == most]
    return huge


def as_one(uses: Uses, huge: Ints) -> Uses:
    """The uses of a huge page as those of the small page of it that is used most."""
    unit = uses.page >> _SMALL_BITS
    inside = np.flatnonzero(find_rows(huge, unit) >= 0)
    if not len(inside):
        return uses
    keys, of = np.unique(uses.page[inside], return_inverse=True)
    order = np.lexsort((-np.bincount(of, uses.weight[inside]), keys >> _SMALL_BITS))
    units, first = np.unique(keys[order] >> _SMALL_BITS, return_index=True)
    page = uses.page.copy()
    page[inside] = keys[order][first][find_rows(units, unit[inside])]
    entries, into = np.unique(np.stack([page, uses.tid]), axis=1, return_inverse=True)
    return Uses(entries[0], entries[1], np.bincount(into.ravel(), uses.weight).astype(np.float64))


def in_huge(observation: Observation, sharing: Sharing, huge: Ints) -> Flags:
    """(M,) whether each page is of a huge one."""
    flags: Flags = find_rows(huge, _by_pid(observation, sharing) >> _SMALL_BITS) >= 0
    return flags


def _by_pid(observation: Observation, sharing: Sharing) -> Ints:
    process, number = split_keys(sharing.keys)
    return page_keys(observation.processes.pid[process], number)
