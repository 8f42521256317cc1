"""All findings, and the answer where there are none."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from . import cpus, kernel, memory, policy
from .away import AWAY, FEW
from .finding import Finding
from .view import View, Work
from .words import by_node, listed, percent, size

# Causes of memory that is away from its threads, of which a process has one: the first that holds.
MEMORY: tuple[Callable[[View, Work], Finding | None], ...] = (
    policy.cpuset_without_memory,
    policy.huge_pages_elsewhere,
    policy.interleave_by_accident,
    policy.policy_away,
    policy.mbind_forbidden,
    memory.node_full,
    memory.slow_memory,
    memory.memory_away,
    memory.threads_away,
    memory.memory_on_one_node,
    memory.parts_away,
)
CPUS: tuple[Callable[[View], Iterator[Finding]], ...] = (
    cpus.too_few_cpus,
    cpus.pinned_together,
    cpus.everything_on_one_node,
    cpus.programs_on_one_cpu,
    cpus.siblings_doubled,
)
KERNEL: tuple[Callable[[View], Iterator[Finding]], ...] = (
    kernel.pages_wander,
    kernel.swapped,
    kernel.device_away,
)

# Their cures bring threads and memory together, too.
PLACING = ("everything-on-one-node", "programs-on-one-cpu")


class Answer(msgspec.Struct, frozen=True):
    """The findings, those that matter most first; without any, the reason why NUMA does not matter.

    sure: that it does not; else nothing wrong was seen, and the reason says what cannot be seen.
    """

    findings: tuple[Finding, ...]
    reason: str
    sure: bool


def find(view: View) -> Answer:
    """What hurts the processes of a view."""
    found = [finding for one in (*CPUS, *KERNEL) for finding in one(view)]
    settled = {pid for finding in found if finding.name in PLACING for pid in finding.pids}
    if len(view.machine.nodes) > 1:
        for work in view.with_memory:
            if work.process.pid in settled or (work.sampled and work.sampled.remote < FEW):
                continue
            causes = (cause(view, work) for cause in MEMORY)
            found += [finding for finding in causes if finding][:1]
    findings = tuple(sorted(found, key=lambda finding: -finding.weight))
    if findings:
        return Answer(findings, "", True)
    if reason := _does_not_matter(view):
        return Answer((), reason, True)
    return Answer((), _not_seen(view), False)


def _does_not_matter(view: View) -> str:
    """Why NUMA does not matter; nothing where it may."""
    if len(view.machine.nodes) < 2:
        return "this machine has one node: all memory is local"
    if not view.busy:
        ran = sum(work.ran for work in view.works)
        return f"idle: it used {percent(ran)} of one cpu in {view.seconds:.1f} s"
    if any(work.process.hidden for work in view.works if work.threads):
        return ""
    total = sum(work.bytes for work in view.works if work.threads)
    if not view.with_memory:
        return f"its {size(total)} of memory fit into the caches ({size(view.cache_bytes)} each)"
    works = view.with_memory
    if all(work.sampled for work in works):
        return _seen_local(works)
    local = sum(work.local * work.bytes for work in works) / sum(work.bytes for work in works)
    if local < 1 - AWAY:
        return ""
    nodes = {node for work in works for node in work.nodes}
    return f"{percent(local)} of its {size(total)} are on {listed(nodes)}, where its threads run"


def _seen_local(works: Sequence[Work]) -> str:
    """That sampled accesses are local, or shared so that no place is better."""
    seen = [work.sampled for work in works if work.sampled]
    total = sum(one.accesses for one in seen)
    remote = percent(sum(one.remote * one.accesses for one in seen) / total)
    if all(one.remote < AWAY for one in seen):
        return f"{remote} of {total} sampled accesses are remote"
    return ""


def _not_seen(view: View) -> str:
    """What a look cannot see of processes whose memory matters."""
    for work in view.works:
        if work.threads and work.process.hidden:
            return f"where its memory is could not be seen: {work.process.hidden}"
    if any(work.sampled for work in view.with_memory):
        return "many sampled accesses are remote, to memory that threads of several nodes share"
    spread: dict[int, int] = {}
    for work in view.with_memory:
        for node, count in work.memory.items():
            spread[node] = spread.get(node, 0) + count
    return (
        f"threads and memory are on the same nodes ({by_node(spread)}); whether each thread uses what is near"
        " it, only a recording tells (nprof record)"
    )
