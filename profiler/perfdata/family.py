"""Who made whom: processes and threads of recordings, named by the records of their forks.

A process is `pN`, its forked children `pN.1`, `pN.2` …; a thread is its creation path. What perf wrote of
processes that ran before it (time 0) says nothing of their birth: they are roots, their threads the main
thread's children.
"""

import bisect
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from ..identity.records import ThreadRecord
from .records import ThreadSpan

LARGEST_TID = 1 << 22  # the kernel's PID_MAX_LIMIT
_LONGEST_PATH = 512


@dataclass
class Life:
    """One life of a process. start, end: -1 when it was there before, or lived on; spans: its other threads.

    seen: its main thread was told of, or has samples; paths: creation paths by tid, filled by `threads`.
    """

    pid: int
    start: int
    end: int
    parent: "Life | None" = None
    parent_pid: int = -1
    process: str = ""
    name: str = ""
    spans: list[ThreadSpan] = field(default_factory=list)
    paths: dict[int, str] = field(default_factory=dict)
    children: int = 0
    seen: bool = True

    def covers(self, time: int) -> bool:
        """Whether it lived then."""
        return self.start <= time and (self.end < 0 or time <= self.end)

    def threads(self) -> list[ThreadRecord]:
        """The threads with their creation paths; of a tid that came back `paths` has the last."""
        made: dict[str, int] = {}
        main = ThreadRecord(self.process, "0", self.pid, self.pid, self.name, self.start, self.end)
        records = [main] if self.seen else []
        self.paths = {self.pid: "0"}
        for span in sorted(self.spans, key=lambda one: one.start):
            above = self.paths.get(span.parent_tid, "0")
            above = above if len(above) < _LONGEST_PATH else "0"
            made[above] = made.get(above, 0) + 1
            path = self.paths[span.tid] = f"{above}.{made[above]}"
            records.append(
                ThreadRecord(self.process, path, self.pid, span.tid, span.name, span.start, span.end)
            )
        return records


def family(spans: Iterable[ThreadSpan], wanted: Collection[int]) -> list[Life]:
    """The processes with an id in `wanted` and their ancestors, named, parents before their children.

    spans: lives of threads, of one recording or of several of the same run.
    """
    lives = _processes(_united(spans))
    for life in (one for same in lives.values() for one in same):
        life.parent = _parent(lives, life)
    needed: dict[int, Life] = {}
    for pid in wanted:
        for life in lives.get(pid, []):
            ancestor: Life | None = life
            while ancestor is not None and id(ancestor) not in needed:
                needed[id(ancestor)] = ancestor
                ancestor = ancestor.parent
    return _named(lives, needed)


def _named(lives: dict[int, list[Life]], needed: dict[int, Life]) -> list[Life]:
    """Children are counted in order of birth, whether needed or not; roots in order of their ids."""
    for life in sorted((one for same in lives.values() for one in same), key=lambda one: one.start):
        if life.parent is not None:
            life.parent.children += 1
            life.process = f".{life.parent.children}"
    roots = 0
    # A child is born after its parent, so parents are named first; a root's own birth is of no account.
    ordered = sorted(
        needed.values(), key=lambda one: (one.parent is not None, one.start if one.parent else one.pid)
    )
    for life in ordered:
        if life.parent is not None and len(life.parent.process) < _LONGEST_PATH:
            life.process = life.parent.process + life.process
        else:
            life.process = f"p{roots}"
            roots += 1
    return ordered


def _united(spans: Iterable[ThreadSpan]) -> list[ThreadSpan]:
    """Each life once: a later file tells again, as if it had always been, what an earlier one saw begin."""
    by_tid: dict[tuple[int, int], list[ThreadSpan]] = {}
    for span in spans:
        if not (0 <= span.tid <= LARGEST_TID and 0 <= span.pid <= LARGEST_TID):
            continue
        start = span.start if span.start > 0 else -1
        known = by_tid.setdefault((span.pid, span.tid), [])
        if known and (start < 0 or known[-1].end < 0 or start <= known[-1].end):
            last = known[-1]
            last.start = max(start, last.start)
            last.end = max(span.end, last.end)
            last.name = span.name or last.name
            if last.parent_pid < 0:
                last.parent_pid, last.parent_tid = span.parent_pid, span.parent_tid
        else:
            known.append(
                ThreadSpan(span.pid, span.tid, span.name, span.parent_pid, span.parent_tid, start, span.end)
            )
    return [span for known in by_tid.values() for span in known]


def _processes(spans: list[ThreadSpan]) -> dict[int, list[Life]]:
    lives: dict[int, list[Life]] = {}
    for span in spans:
        if span.tid == span.pid:
            life = Life(span.pid, span.start, span.end, parent_pid=span.parent_pid, name=span.name)
            lives.setdefault(span.pid, []).append(life)
    for same in lives.values():
        same.sort(key=lambda one: one.start)
    for span in spans:
        if span.tid != span.pid:
            same = lives.setdefault(span.pid, [Life(span.pid, -1, -1, seen=False)])
            life_at(same, span.start).spans.append(span)
    return lives


def _parent(lives: dict[int, list[Life]], life: Life) -> Life | None:
    """The process that forked this one, if its birth was seen."""
    if life.start < 0 or life.parent_pid in (-1, life.pid):
        return None
    same = lives.get(life.parent_pid)
    parent = life_at(same, life.start - 1) if same else None
    return parent if parent is not None and parent.start < life.start and parent.covers(life.start) else None


def life_at(same: list[Life], time: int) -> Life:
    """Whose life of one id it was: the last that had begun; of those in order of their births."""
    return same[max(bisect.bisect_right(same, time, key=lambda life: life.start) - 1, 0)]
