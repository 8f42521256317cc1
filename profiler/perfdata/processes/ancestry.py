"""Who forked whom: processes and threads of recordings, named by the records of their forks.

A process is `pN`, its forked children `pN.1`, `pN.2` …; a thread is its creation path. What perf wrote of
processes that ran before it (time 0) says nothing of their start: they are roots, their threads the main
thread's children.
"""

import bisect
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from ...identity.records import ThreadRecord
from .records import ThreadSpan
from .unrecorded import LARGEST_TID

_LONGEST_PATH = 512


@dataclass
class ProcessSpan:
    """A process from its start to its end; -1 when it was there before, or stayed.

    label: what it is called in a trace; name: its main thread's last one; spans: its other threads; has_main:
    its main thread has a record or samples; paths: creation paths by tid, filled by `threads`.
    """

    pid: int
    start: int
    end: int
    parent: "ProcessSpan | None" = None
    parent_pid: int = -1
    label: str = ""
    name: str = ""
    spans: list[ThreadSpan] = field(default_factory=list)
    paths: dict[int, str] = field(default_factory=dict)
    children: int = 0
    has_main: bool = True

    def covers(self, time: int) -> bool:
        """Whether it existed then."""
        return self.start <= time and (self.end < 0 or time <= self.end)

    def threads(self) -> list[ThreadRecord]:
        """The threads with their creation paths; of a tid that came back `paths` has the last."""
        made: dict[str, int] = {}
        main = ThreadRecord(self.label, "0", self.pid, self.pid, self.name, self.start, self.end)
        records = [main] if self.has_main else []
        self.paths = {self.pid: "0"}
        for span in sorted(self.spans, key=lambda one: one.start):
            above = self.paths.get(span.parent_tid, "0")
            above = above if len(above) < _LONGEST_PATH else "0"
            made[above] = made.get(above, 0) + 1
            path = self.paths[span.tid] = f"{above}.{made[above]}"
            records.append(
                ThreadRecord(self.label, path, self.pid, span.tid, span.name, span.start, span.end)
            )
        return records


def processes_of(spans: Iterable[ThreadSpan], wanted: Collection[int]) -> list[ProcessSpan]:
    """The processes with an id in `wanted` and their ancestors, named, parents before their children.

    spans: of threads, of one recording or of several of the same run.
    """
    by_pid = _process_spans(_merged(spans))
    for process in (one for same in by_pid.values() for one in same):
        process.parent = _parent(by_pid, process)
    needed: dict[int, ProcessSpan] = {}
    for pid in wanted:
        for process in by_pid.get(pid, []):
            ancestor: ProcessSpan | None = process
            while ancestor is not None and id(ancestor) not in needed:
                needed[id(ancestor)] = ancestor
                ancestor = ancestor.parent
    return _named(by_pid, needed)


def _named(by_pid: dict[int, list[ProcessSpan]], needed: dict[int, ProcessSpan]) -> list[ProcessSpan]:
    """Children are counted in order of their starts, whether needed or not; roots in order of their ids."""
    for process in sorted((one for same in by_pid.values() for one in same), key=lambda one: one.start):
        if process.parent is not None:
            process.parent.children += 1
            process.label = f".{process.parent.children}"
    roots = 0
    # A child starts after its parent, so parents are named first; when a root started does not matter.
    ordered = sorted(
        needed.values(), key=lambda one: (one.parent is not None, one.start if one.parent else one.pid)
    )
    for process in ordered:
        if process.parent is not None and len(process.parent.label) < _LONGEST_PATH:
            process.label = process.parent.label + process.label
        else:
            process.label = f"p{roots}"
            roots += 1
    return ordered


def _merged(spans: Iterable[ThreadSpan]) -> list[ThreadSpan]:
    """Each thread once: a later file says of one that an earlier file saw begin that it was always there."""
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


def _process_spans(spans: list[ThreadSpan]) -> dict[int, list[ProcessSpan]]:
    by_pid: dict[int, list[ProcessSpan]] = {}
    for span in spans:
        if span.tid == span.pid:
            process = ProcessSpan(span.pid, span.start, span.end, parent_pid=span.parent_pid, name=span.name)
            by_pid.setdefault(span.pid, []).append(process)
    for same in by_pid.values():
        same.sort(key=lambda one: one.start)
    for span in spans:
        if span.tid != span.pid:
            same = by_pid.setdefault(span.pid, [ProcessSpan(span.pid, -1, -1, has_main=False)])
            span_at(same, span.start).spans.append(span)
    return by_pid


def _parent(by_pid: dict[int, list[ProcessSpan]], process: ProcessSpan) -> ProcessSpan | None:
    """The process that forked this one, if its start was recorded."""
    if process.start < 0 or process.parent_pid in (-1, process.pid):
        return None
    same = by_pid.get(process.parent_pid)
    parent = span_at(same, process.start - 1) if same else None
    return (
        parent
        if parent is not None and parent.start < process.start and parent.covers(process.start)
        else None
    )


def span_at(same: list[ProcessSpan], time: int) -> ProcessSpan:
    """Which process with one id it was: the last that had begun; `same` in order of their starts."""
    return same[max(bisect.bisect_right(same, time, key=lambda process: process.start) - 1, 0)]
