"""What threads are expected to do in the next run, of which a recording shows one.

Threads of a pool may be exchanged, so each of them counts as their mean; so does what siblings take from
others, and what children that a parent hands work to by chance take from each other.
"""

from typing import NamedTuple

import msgspec

from ...threads.problem import Nodes
from ..use import ThreadUse
from ..workload import Workload
from .exchanged import exchanged_matrix, exchanged_vector
from .pools import Twins, pools_of
from .siblings import by_distance, children_by_chance, siblings_of, threads_by_chance


class ExpectedUse(NamedTuple):
    """use: of N threads; pools: threads of each; children, by_chance: of each parent those that it deals
    by chance, and threads that one thread made so."""

    use: ThreadUse
    pools: list[Nodes]
    children: list[Twins]
    by_chance: list[Twins]


def expected_use(workload: Workload) -> ExpectedUse:
    """Of a workload that tells of use."""
    assert workload.use is not None
    pools: list[Nodes] = []
    if workload.keeps:
        made = () if workload.unordered else workload.use.accesses
        pools = pools_of(
            workload.threads, workload.keeps, workload.names, made, workload.lives, workload.makers
        )
    children = children_by_chance(workload.threads, workload.names, workload.use)
    pooled = workload.use.dealt(lambda lines: exchanged_matrix(lines, pools))
    siblings = siblings_of(workload.threads, pooled.lines, workload.names)
    expected = pooled.dealt(
        lambda lines: by_distance(
            exchanged_matrix(lines, siblings), [own.busy for own in children], workload.threads
        )
    )
    use: ThreadUse = msgspec.structs.replace(
        expected,
        accesses=exchanged_vector(workload.use.accesses, pools),
        together=exchanged_matrix(workload.use.together, pools),
        activity=workload.use.activity and workload.use.activity.merged(),
        sleeps=None if workload.use.sleeps is None else exchanged_vector(workload.use.sleeps, pools),
    )
    by_chance = threads_by_chance(workload.threads, workload.names, workload.use, pools)
    return ExpectedUse(use, pools, children, by_chance)
