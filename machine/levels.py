"""The levels between a node and its cores: dies, clusters, shared caches, to any depth."""

from collections.abc import Iterable, Sequence

import msgspec

from .topology import MAX_LEVELS, Core


def with_groups(cores: Sequence[Core], units: Iterable[Iterable[int]]) -> tuple[Core, ...]:
    """The cores with `groups` filled in; units: the cpus of each die, cluster, cache and so on, in any order.

    A unit counts for what it holds of a node's cores, if that is more than one core and less than the node;
    one that cuts through a core or through a larger unit is left out, since nothing can be divided along it.
    """
    parts: list[tuple[int, frozenset[int]]] = []
    distinct = {frozenset(unit) for unit in units}
    for node in dict.fromkeys(core.node for core in cores):
        own = [frozenset(core.cpus) for core in cores if core.node == node]
        everything = frozenset[int]().union(*own)
        narrow, wide = min(map(len, own)), len(everything)
        found = {part for unit in distinct if narrow < len(part := unit & everything) < wide}
        kept: list[frozenset[int]] = []
        for part in sorted(found, key=lambda part: (-len(part), sorted(part))):
            inside = sum(core <= part for core in own)
            whole = all(core <= part or not core & part for core in own)
            if inside > 1 and whole and all(part <= larger or not part & larger for larger in kept):
                kept.append(part)
        parts += [(node, part) for part in kept]
    return tuple(
        msgspec.structs.replace(
            core,
            groups=tuple(
                number
                for number, (node, part) in enumerate(parts)
                if node == core.node and part.issuperset(core.cpus)
            )[:MAX_LEVELS],
        )
        for core in cores
    )
