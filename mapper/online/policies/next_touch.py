"""Next-touch: after a thread moved, its pages follow when they are touched next, to whoever touches them.

[NEXT-TOUCH], 2: a page so marked migrates near the task that touches it and the mark is gone.
There the kernel's fault handler sees the touch; here it is the next sample of the page, so that no kernel
must be changed. Which pages a thread's are is told by who touched them last.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..actions import Action, Decision, MoveThread
from ..observation import Flags, Ints, Observation
from .page_sets import find_rows, move_actions, page_keys, split_keys
from .parameters import parameter


class _Marks(NamedTuple):
    """What is known of pages, sorted by key; pid instead of row, for rows change from interval to
    interval.
    """

    pid: Ints
    number: Ints
    toucher: Ints  # tid
    marked: Flags


@dataclass(frozen=True)
class NextTouch:
    """The memory half of any thread policy."""

    remember: int = parameter(1 << 20, "pages remembered with who touched them last", low=1)
    needs: ClassVar[frozenset[str]] = frozenset({"accesses"})

    def follow(self, observation: Observation, actions: tuple[Action, ...], state: Any) -> Decision:
        """Moves of marked pages touched in this interval; then marks the pages of threads that `actions`
        move.
        """
        keys, toucher, marked = _as_rows(observation, state)
        touched, last = _last_touches(observation)
        rows = find_rows(keys, touched)
        due = (rows >= 0) & marked[rows] if len(keys) else np.zeros(len(touched), dtype=bool)
        moves = move_actions(
            observation,
            touched[due],
            observation.touches.node[last[due]],
            "next touch after its thread moved",
        )
        fresh = observation.threads.tid[observation.touches.thread[last]]
        kept = ~np.isin(keys, touched)
        keys = np.concatenate([touched, keys[kept]])
        toucher = np.concatenate([fresh, toucher[kept]])
        marked = np.concatenate([np.zeros(len(touched), dtype=bool), marked[kept]])
        leavers = [action.tid for action in actions if isinstance(action, MoveThread)]
        marked |= np.isin(toucher, leavers)
        kept_rows = slice(0, self.remember)  # the freshest stand first
        process, number = split_keys(keys[kept_rows])
        pids = observation.processes.pid[process]
        return Decision(moves, _Marks(pids, number, toucher[kept_rows], marked[kept_rows]))


def _as_rows(observation: Observation, state: _Marks | None) -> tuple[Ints, Ints, Flags]:
    """Sorted keys by this observation's process rows, touchers and marks; pages of ended processes are
    gone.
    """
    if state is None:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, dtype=bool)
    order = np.argsort(observation.processes.pid)
    rows = find_rows(observation.processes.pid[order], state.pid)
    alive = rows >= 0
    keys = page_keys(order[rows[alive]], state.number[alive])
    sequence = np.argsort(keys)
    return keys[sequence], state.toucher[alive][sequence], state.marked[alive][sequence]


def _last_touches(observation: Observation) -> tuple[Ints, Ints]:
    """Keys of the pages touched, ascending, and the row in `touches` that was the last of each."""
    touches, pages = observation.touches, observation.pages
    order = np.lexsort((touches.last_s, touches.page))
    page = touches.page[order]
    ends = np.flatnonzero(np.append(page[1:] != page[:-1], True)) if len(page) else np.empty(0, np.int64)
    keys = page_keys(pages.process, pages.number)[page[ends]]
    sequence = np.argsort(keys)
    return keys[sequence], order[ends][sequence]
