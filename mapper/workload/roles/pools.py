"""Pools: threads that are exchangeable, each of which may do in the next run what another did in this one."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...threads.problem import Floats, Nodes

LITTLE = 4.0  # times fewer accesses than most of a pool have
LIGHT = 0.05  # of the mean thread's accesses, below which one needs no cpu of its own
WORKING_PER_IDLE = 4  # siblings: one that came before so many that work may work in the next run
BEGUN = 64.0  # lines that a thread takes to begin and to end, though it does nothing between
_NUMBERS = re.compile(r"[0-9]+")
_LAST_NUMBER = re.compile(r"[0-9]+(?=[^0-9]*$)")


def pools_of(
    threads: Sequence[tuple[str, str]],
    keeps: Sequence[bool],
    names: Sequence[str] = (),
    accesses: Sequence[float] | Floats = (),
    lives: Sequence[tuple[int, int]] = (),
    makers: Mapping[tuple[str, str], int] | None = None,
) -> list[Nodes]:
    """The threads of each pool: those without a role that one thread made, if there are several.

    threads: (process, creation path) of each; keeps: whether it has a role; names: of each, where known: only
    threads whose names differ in nothing but numbers are of one pool; accesses: of each, where known: one
    with far fewer than the others does something else; lives: (start, end) in ns, end -1: to the end of the
    run, where known: those that begin when all before have ended are another pool; makers: number of each
    thread, where several that follow one another have one: then who made any of them made what has it. A
    thread that made others without a role is of their pool if it has none either: OpenMP's first thread works
    in the team, and pools may grow by themselves. One that does next to nothing but make one of its kind was
    made in its place, as in a runtime whose workers make the next before they block.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    where = {key: number for number, key in enumerate(threads)}
    maker_paths = _maker_paths(threads, names, np.asarray(accesses, np.float64))
    first: dict[tuple[str, str, str], int] = {}
    joined: list[tuple[int, int]] = []
    for number, (process, _) in enumerate(threads):
        if keeps[number]:
            continue
        name, above = kind_of(names, number), maker_paths[number]
        joined.append((number, first.setdefault((process, above, name), number)))
        made_by = where.get((process, above))
        if made_by is not None and not keeps[made_by] and kind_of(names, made_by) == name:
            joined.append((number, made_by))
    for (process, path), number in (makers or {}).items():
        if not keeps[number]:
            family = process, path.rpartition(".")[0], kind_of(names, number)
            joined.append((number, first.setdefault(family, number)))
    one, other = np.array(joined, np.int64).reshape(-1, 2).T
    count = len(threads)
    _, pool = connected_components(
        coo_array((np.ones(len(one)), (one, other)), shape=(count, count)), directed=False
    )
    free = np.flatnonzero(~np.asarray(keeps, bool))
    made = [free[pool[free] == number] for number in np.unique(pool[free])]
    pools = [own for one in made for own in _generations(one, lives)]
    active = [_active(own, np.asarray(accesses, np.float64)) for own in pools]
    return sorted((own for own in active if len(own) > 1), key=lambda own: int(own[0]))


def _maker_paths(threads: Sequence[tuple[str, str]], names: Sequence[str], accesses: Floats) -> list[str]:
    """Path of who made each thread, or of who made that one if it did next to nothing but make this one."""
    made = [path.rpartition(".")[0] for _, path in threads]
    if not len(accesses):
        return made
    alike = [
        (process, above, kind_of(names, k))
        for k, ((process, _), above) in enumerate(zip(threads, made, strict=True))
    ]
    few, only = accesses < LIGHT * accesses.mean(), Counter(alike)
    before = {(*key, kind_of(names, k)): k for k, key in enumerate(threads) if few[k] and made[k]}
    for number, key in enumerate(alike):
        while only[key] == 1 and key in before:
            key = alike[before[key]]
        made[number] = key[1]
    return made


class Twins(NamedTuple):
    """Threads that one made: idle ones, which did little or nothing (or less than others, before these did),
    and those that worked; pool: the number of the pool that these are of, -1: they have roles."""

    idle: Nodes
    busy: Nodes
    pool: int = -1


def may_come_first(twins: Twins, given: Sequence[int]) -> Twins:
    """Without those whose place is given; of the idle only the last, one for each WORKING_PER_IDLE that work:
    numbers differ by a few from run to run."""
    idle, busy = (own[~np.isin(own, given)] for own in (twins.idle, twins.busy))
    few = -(-len(busy) // WORKING_PER_IDLE)
    return twins._replace(idle=idle[max(len(idle) - few, 0) :], busy=busy)


def idle_twins(
    threads: Sequence[tuple[str, str]],
    pools: Sequence[Nodes],
    names: Sequence[str],
    accesses: Floats,
    lines: Floats,
    keeps: Sequence[bool] = (),
) -> list[Twins]:
    """Which of several threads get work may be chance (the last that waits is woken first), so that in the
    next run the idle ones may do it, and those without a role that did far less than their pool. As for
    pools_of; of pools that one thread made the first has them.

    lines: (N, N) that two threads take from each other: one that talks more to others than to these belongs
    to its partner.
    """
    little = does_little(accesses, lines)
    roleless = ~np.asarray(keeps, bool) if len(keeps) else np.zeros(len(threads), bool)
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number, (process, path) in enumerate(threads):
        groups[process, path.rpartition(".")[0], kind_of(names, number)].append(number)
    pool_of = {thread: number for number, pool in enumerate(pools) for thread in pool.tolist()}
    answer: dict[tuple[str, str, str], Twins] = {}
    for group, members in groups.items():
        own = np.array(members)
        free = np.array([thread not in pool_of for thread in members])
        within = [pool_of[thread] for thread in members if thread in pool_of]
        idle = free & little[own]
        busy = pools[min(within)] if within else own[~idle]
        if within:
            idle |= free & roleless[own] & _talks_to(busy, lines)[own]
        answer[group] = Twins(own[idle], busy, min(within, default=-1))
    elsewhere = _by_counted_name(threads, names, answer.values())
    found = [_made_elsewhere(one, elsewhere, threads, names) for one in answer.values() if len(one.idle)]
    return [one for one in found if len(one.busy)]


def _by_counted_name(
    threads: Sequence[tuple[str, str]], names: Sequence[str], twins: Iterable[Twins]
) -> dict[tuple[str, str], Twins]:
    """By process and by name without its last number, those of whom most work."""
    answer: dict[tuple[str, str], Twins] = {}
    for one in twins if names else ():
        kinds = {(threads[thread][0], _LAST_NUMBER.sub("", names[thread])) for thread in one.busy.tolist()}
        for kind in kinds if len(kinds) == 1 else ():
            answer[kind] = max(answer.get(kind, one), one, key=lambda each: len(each.busy))
    return answer


def _made_elsewhere(
    own: Twins,
    counted: Mapping[tuple[str, str], Twins],
    threads: Sequence[tuple[str, str]],
    names: Sequence[str],
) -> Twins:
    """Idle threads that work beside none of their kind: with those that another thread made, if their names
    say that they are more of them (`GC Thread#0`, whose likes its boss makes later)."""
    idle = own.idle.tolist()
    kinds = {(threads[thread][0], _LAST_NUMBER.sub("", names[thread])) for thread in idle if names}
    likes = counted.get(next(iter(kinds))) if len(kinds) == 1 and not len(own.busy) else None
    if likes is None or any(threads[thread][1] == "0" for thread in idle):
        return own
    taken = {names[thread] for thread in likes.busy.tolist()}
    said = {names[thread] for thread in idle}
    return own if said & taken or len(said) < len(idle) else own._replace(busy=likes.busy, pool=likes.pool)


def does_little(accesses: Floats, lines: Floats) -> NDArray[np.bool_]:
    """(N,) whether each makes few accesses and takes few lines; lines: (N, N)."""
    taken = lines.sum(axis=1)
    few = max(LIGHT * taken.mean(), BEGUN)
    answer: NDArray[np.bool_] = (accesses < LIGHT * accesses.mean()) & (taken <= few)
    return answer


def _talks_to(pool: Nodes, lines: Floats) -> NDArray[np.bool_]:
    """(N,) whether each takes at least half of its lines from threads of the pool, or few; lines: (N, N)."""
    taken = lines.sum(axis=1)
    answer: NDArray[np.bool_] = (2 * lines[:, pool].sum(axis=1) >= taken) | (taken <= BEGUN)
    return answer


def idle_crowd(accesses: Floats, lines: Floats, others: Nodes, cpus: int) -> Nodes:
    """Threads with hardly anything to do where there are more threads than cpus: such as those that a library
    makes in each rank and does not use. They start at the same time, so that a few cpus would be crowded.

    As for idle_twins; others: threads that are something else, such as of a pool.
    """
    idle = np.setdiff1d(np.flatnonzero(does_little(accesses, lines)), others)
    answer: Nodes = idle if len(accesses) > cpus and len(idle) > cpus // 2 else np.empty(0, np.int64)
    return answer


def _generations(pool: Nodes, lives: Sequence[tuple[int, int]]) -> list[Nodes]:
    """The threads of a pool, cut where all that have begun have ended."""
    if not lives:
        return [pool]
    start, end = np.array([lives[thread] for thread in pool.tolist()]).T
    order = np.argsort(start, kind="stable")
    ended = np.maximum.accumulate(np.where(end < 0, np.iinfo(np.int64).max, end)[order])
    cuts = np.flatnonzero(start[order][1:] >= ended[:-1]) + 1
    return [np.sort(own) for own in np.split(pool[order], cuts)]


def kind_of(names: Sequence[str], thread: int) -> str:
    """A thread's name without what counts threads of one kind."""
    return _NUMBERS.sub("", names[thread]) if names else ""


def _active(pool: Nodes, accesses: Floats) -> Nodes:
    """The threads that do as much as most of them, or more."""
    if not len(accesses):
        return pool
    return pool[accesses[pool] * LITTLE >= np.median(accesses[pool])]
