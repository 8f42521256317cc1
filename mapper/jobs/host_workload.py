"""What the plan of one host is made for: its ranks' parts side by side, with the messages between them.

A message's bytes count as the cache lines that they fill: the sender writes them, the receiver takes them.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from numaplan.analyzer import BY_PAIRS, LINE_BYTES, PageCounts
from numaplan.common import UsageError
from numaplan.machine import Machine

from ..threads.problem import Floats, Nodes
from ..workload.cache_use import CacheUse
from ..workload.joining import together
from ..workload.messages import MAIN, events_of_a_line
from ..workload.one_job import check_one_job
from ..workload.pages import mappings_joined
from ..workload.use import ThreadUse
from ..workload.workload import Workload
from .part import KEPT, NEEDED, Part
from .part_tables import ONE_RUN


def join(parts: Sequence[Part]) -> Workload:
    """The workload of ranks that run on one host; raises UsageError for parts that do not belong together."""
    first = parts[0]
    _check_alike(parts)
    keys = [key for part in parts for key in part.threads[: part.facts.own]]
    index = {key: number for number, key in enumerate(keys)}
    if len(index) < len(keys):
        raise UsageError("two parts have the same threads", "make them again with 'nmap reduce'")
    places = [_places(part, index) for part in parts]
    matrices = {name: _joined(parts, places, name, len(keys)) for name in (*NEEDED, KEPT)}
    lines, exchanged = matrices["lines"], _exchanged(parts, index, len(keys))
    events = events_of_a_line(matrices["comm"], lines)
    told = _told_by_messages(parts, exchanged)
    matrices["comm"][told] = lines[told] = matrices[KEPT][told] = 0.0
    phases = _phases(parts)
    apart = len({part.facts.recording for part in parts}) > 1
    return Workload(
        threads=keys,
        comm=matrices["comm"] + exchanged * events,
        loads=np.concatenate([part.loads for part in parts]),
        sources={"traces": sorted({part.facts.recording for part in parts})},
        argv=first.facts.argv,
        build_id=first.facts.build_id,
        executable=first.facts.executable,
        pages=_pages(parts, places, len(keys)),
        machine=_machine(parts),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.facts.notes)),
        not_balanced=first.facts.not_balanced if len(parts) == 1 else (),
        phases=phases[0] if len(phases[1]) else None,
        phase_rates=phases[1] if len(phases[1]) else None,
        seen_on=_seen_on(parts),
        use=ThreadUse(
            accesses=np.concatenate([part.accesses for part in parts]),
            lines=lines + exchanged,
            together=matrices["together"],
            exact=all(part.facts.use_exact for part in parts),
            beyond=_all(parts, "beyond"),
            caches=_caches(parts),
            kept=matrices[KEPT] if any(KEPT in part.matrices for part in parts) else None,
        ),
        lives=tuple(life for part in parts for life in part.lives),
        keeps=tuple(keeps for part in parts for keeps in part.keeps),
        names=tuple(name for part in parts for name in part.names),
        unordered=any(part.facts.unordered for part in parts),
        lasted_s=_longest([part.facts.lasted_s for part in parts]),
        apart=apart and not all(part.facts.messages for part in parts),
    )


def _longest(seconds: Sequence[float]) -> float:
    """Of the runs that the parts are of, -1: not known."""
    return max(seconds) if min(seconds) >= 0 else math.inf


def _check_alike(parts: Sequence[Part]) -> None:
    """Raise UsageError where parts are of different jobs, or count different things."""
    check_one_job((part.facts.membership for part in parts), ONE_RUN)
    if len({part.facts.pages for part in parts}) > 1:
        raise UsageError("some ranks were recorded with their memory, others without", "record all alike")
    if len({part.facts.period for part in parts}) > 1:
        raise UsageError("ranks were recorded at different periods", "record all alike")


def _machine(parts: Sequence[Part]) -> Machine | None:
    """Where all were recorded, if that is known to be one machine or its like."""
    alike = len({part.machine.fingerprint for part in parts}) == 1
    return parts[0].machine if alike else None


def _places(part: Part, index: dict[tuple[str, str], int]) -> Nodes:
    """(T,) of each thread of a part its number on the host, -1: it runs on another."""
    return np.array([index.get(key, -1) for key in part.threads])


def _joined(parts: Sequence[Part], places: Sequence[Nodes], name: str, count: int) -> Floats:
    """(N, N) a matrix of all; how far threads recorded apart run together is taken to be all the time."""
    answer = np.zeros((count, count))
    recordings = [part.facts.recording for part in parts for _ in range(part.facts.own)]
    if name == "together":
        number = {one: place for place, one in enumerate(dict.fromkeys(recordings))}
        of = np.array([number[one] for one in recordings])
        answer[:] = of[:, None] != of[None, :]
    for part, place in zip(parts, places, strict=True):
        if name not in part.matrices:  # it was not known
            continue
        matrix = part.matrices[name]
        here = np.flatnonzero(place >= 0)
        answer[np.ix_(place[: part.facts.own], place[here])] = matrix[:, here]
    return answer


def _exchanged(parts: Sequence[Part], index: dict[tuple[str, str], int], count: int) -> Floats:
    """(N, N) lines of messages between the ranks' threads, half of a pair's in each direction.

    By the threads that send and receive where they are known, else by the main ones.
    """
    senders = {part.facts.rank: _senders(part, index) for part in parts}
    mains = {
        part.facts.rank: index.get((f"r{part.facts.rank}", MAIN), index[part.threads[0]]) for part in parts
    }
    answer = np.zeros((count, count))
    for part in parts:
        rank, found = part.facts.rank, part.messages
        if found is None:
            continue
        for peer, size, thread in zip(
            found.peer.tolist(), found.bytes.tolist(), found.thread.tolist(), strict=True
        ):
            if peer in mains:
                one = index[part.threads[thread]] if thread >= 0 else mains[rank]
                other = senders[peer].get(rank, mains[peer])
                answer[one, other] += size / LINE_BYTES / 2
                answer[other, one] += size / LINE_BYTES / 2
    return answer


def _told_by_messages(parts: Sequence[Part], exchanged: Floats) -> NDArray[np.bool_]:
    """(N, N) of which threads the ranks send each other messages.

    On one host these go through lines that both touch, which a recording of both has counted already.
    """
    part = np.repeat(np.arange(len(parts)), [one.facts.own for one in parts])
    between = np.zeros((len(parts), len(parts)))
    np.add.at(between, (part[:, None], part[None, :]), exchanged)
    np.fill_diagonal(between, 0.0)
    told: NDArray[np.bool_] = between[np.ix_(part, part)] > 0
    return told


def _senders(part: Part, index: dict[tuple[str, str], int]) -> dict[int, int]:
    """By other rank the thread that sends it most, and so is likely to take what comes from there."""
    most: dict[int, tuple[int, int]] = {}
    found = part.messages
    if found is None:
        return {}
    for peer, size, thread in zip(
        found.peer.tolist(), found.bytes.tolist(), found.thread.tolist(), strict=True
    ):
        if thread >= 0 and size > most.get(peer, (-1, 0))[0]:
            most[peer] = size, index[part.threads[thread]]
    return {peer: thread for peer, (_, thread) in most.items()}


def _phases(parts: Sequence[Part]) -> tuple[Floats, Floats]:
    """(P, N) loads and (P,) rates by phase: a phase ends where one of any rank does.

    A rank's load in its own phase is even over its time. Times are from the start of each recording.
    """
    ends = np.unique(np.concatenate([part.phase_ends for part in parts]))
    if len(ends) == 0 or any(not len(part.phase_ends) for part in parts):
        return np.zeros((0, sum(part.facts.own for part in parts))), np.zeros(0)
    if len(parts) == 1 or all(np.array_equal(part.phase_ends, ends) for part in parts):
        rates = sum((part.phase_rates for part in _one_each(parts)), np.zeros(len(ends)))
        return np.hstack([part.phases for part in parts]), rates
    begins = np.concatenate([[0], ends[:-1]])
    loads, rates = [], np.zeros(len(ends))
    own_ends = [part.phase_ends for part in parts]
    for part, own in zip(parts, own_ends, strict=True):
        shares = np.zeros((len(ends), len(own)))
        for phase, (start, end) in enumerate(pairwise([0, *own.tolist()])):
            inside = (begins >= start) & (ends <= end)
            shares[inside, phase] = (ends - begins)[inside] / max(1, end - start)
        loads.append(shares @ part.phases)
    for part in _one_each(parts):
        rates += part.phase_rates[
            np.minimum(np.searchsorted(part.phase_ends, ends), len(part.phase_ends) - 1)
        ]
    return np.hstack(loads), rates


def _one_each(parts: Sequence[Part]) -> list[Part]:
    """A part of each recording: its phases are of all ranks in it."""
    return list({part.facts.recording: part for part in parts}.values())


def _seen_on(parts: Sequence[Part]) -> tuple[int, ...]:
    return (
        tuple(node for part in parts for node in part.seen_on) if all(part.seen_on for part in parts) else ()
    )


def _all(parts: Sequence[Part], name: str) -> NDArray[np.float64] | None:
    """(N,) or (N, …) of all threads, None where it is not known of all."""
    found = [getattr(part, name) for part in parts]
    return None if any(one is None for one in found) else np.concatenate(found)


def _caches(parts: Sequence[Part]) -> CacheUse | None:
    """What they miss of caches, where all tell it of the same ones; ranks recorded apart shared none."""
    sizes = {(part.facts.cache_sizes, part.facts.cache_own) for part in parts}
    missed = _all(parts, "missed")
    if len(sizes) > 1 or missed is None:
        return None
    number: dict[tuple[str, int], int] = {}
    domains = [
        number.setdefault((part.facts.recording if domain >= 0 else "", domain), len(number))
        if domain >= 0
        else -1
        for part in parts
        if part.domain is not None
        for domain in part.domain.tolist()
    ]
    ((known, own),) = sizes
    return CacheUse(sizes=known, missed=missed, own=own, domain=np.array(domains, np.int64))


def _pages(parts: Sequence[Part], places: Sequence[Nodes], count: int) -> PageCounts | None:
    if not parts[0].facts.pages:
        return None
    found = [_page_counts(part, place, count) for part, place in zip(parts, places, strict=True)]
    if len(found) == 1:
        return found[0]
    joined = together(found, count)
    if len({part.facts.recording for part in parts}) == 1:  # then times and phases are of one clock
        columns = {name: [getattr(one, name) for one in found] for name in ("phase", "first_ns")}
        known = {name: np.concatenate(own) for name, own in columns.items() if own[0] is not None}
        joined = replace(joined, teams=found[0].teams, **known)
    return mappings_joined(joined)


def _page_counts(part: Part, place: Nodes, count: int) -> PageCounts:
    """A part's pages with threads as the host numbers them; what was first touched elsewhere is its own."""
    assert part.pages is not None
    own = place[: part.facts.own]
    apart: dict[str, Any] = {}
    for name in BY_PAIRS:
        if name in part.matrices:
            whole = np.zeros((count, count))
            for column, other in enumerate(place.tolist()):
                at = np.full(len(own), other) if other >= 0 else own
                whole[own, at] += part.matrices[name][:, column]
            apart[name] = whole
    index = np.append(place, -1)
    toucher = part.pages.toucher
    return replace(
        part.pages,
        thread=index[part.pages.thread],
        toucher=None if toucher is None else index[toucher],
        **apart,
    )
