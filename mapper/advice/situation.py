"""What advice is given about: a trace's workload on a machine, and what the program costs as it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from numaplan.analyzer import Advice, Change, FalseSharing, RegionUse
from numaplan.profiler import Trace

from ..planning.cost.placement import Placement
from ..planning.cost.timed_task import TimedTask
from ..planning.search.doubt import doubt
from ..planning.shares import local_shares
from ..threads.problem import Nodes

WORTH = 0.01  # of the threads' time, that an advice must save
MOST_GROUPS = 8
LEAST = 0.01  # of all accesses, that those of a group must be
KINDS = ("static", "heap", "mmap")
OPENMP = ("libgomp", "libomp", "libiomp")


def short_name(use: RegionUse) -> str:
    """The variable, where that is known."""
    return f"`{use.source.name}`" if use.source and use.source.name else use.title


def made_at(uses: Sequence[RegionUse]) -> str:
    """What the source says of regions that are called by their variables' names."""
    known = [use.title for use in uses if use.source and use.source.name]
    return f" ({'; '.join(known)})" if known else ""


def by_place(regions: Sequence[RegionUse], weight: Callable[[RegionUse], float]) -> list[list[RegionUse]]:
    """Regions that several threads use, those of one name together, the heaviest first; weight: of a region,
    the samples that matter."""
    groups: dict[tuple[str, ...], list[RegionUse]] = {}
    for use in regions:
        if use.kind in KINDS and use.sharers > 1:
            written = use.source.title(use.kind) if use.source else ""  # callers of xmalloc are told apart
            groups.setdefault((use.process, use.kind, use.name, written), []).append(use)
    weights = {key: sum(map(weight, group)) for key, group in groups.items()}
    least = LEAST * sum(use.samples for use in regions)
    ranked = sorted((key for key in groups if weights[key] > least), key=lambda key: -weights[key])
    return [groups[key] for key in ranked[:MOST_GROUPS]]


def gained(advice: Advice) -> float:
    """ns that it saves; 0 where nobody can tell."""
    return advice.gain_ns or 0.0


@dataclass(frozen=True)
class Situation:
    """task: the workload on the machine, lane: of each thread of the trace; usual: what the kernel does;
    names: of the trace's threads; command: the program's line."""

    trace: Trace
    task: TimedTask
    lane: Nodes
    usual: Placement
    regions: Sequence[RegionUse]
    lines: Sequence[FalseSharing]
    names: Sequence[str]
    command: str

    @property
    def openmp(self) -> bool:
        """Whether the program's threads may be OpenMP's, so that its environment binds them; of several
        processes it would bind all to the same cpus."""
        return len({row.process for row in self.trace.thread_rows}) == 1 and any(
            row.name.startswith(OPENMP) for row in self.trace.region_rows
        )

    def gain(self, instead: Placement, usual: Placement | None = None) -> float:
        """ns of waiting that a placement saves; 0 where that is not sure, or not worth it."""
        usual = usual or self.usual
        saved = usual.cost.total_ns - instead.cost.total_ns
        least = max(doubt(self.task, usual, instead), WORTH * self.task.busy_ns(self.usual))
        return saved if saved > least else 0.0

    def advice(
        self,
        kind: str,
        instead: Placement,
        task: TimedTask | None = None,
        *,
        action: str,
        evidence: str,
        change: str,
        usual: Placement | None = None,
    ) -> Advice:
        """What to do to get a placement; task: that it is of, None: where no page and no thread moves.

        usual: what it is compared with, else what the kernel does.
        """
        usual = usual or self.usual
        local = memory = None
        if task is not None:
            before, after = local_shares(self.task, self.usual), local_shares(task, instead)
            local, memory = (
                Change(round(one, 4), round(other, 4)) if min(one, other) >= 0 else None
                for one, other in zip(before, after, strict=True)
            )
        saved = usual.cost.total_ns - instead.cost.total_ns
        return Advice(
            kind=kind,
            action=action,
            evidence=evidence,
            change=change,
            gain_ns=round(saved),
            gain=round(saved / usual.cost.total_ns, 4),
            local_share=local,
            memory_share=memory,
        )
