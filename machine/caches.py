"""The data caches of a machine, one entry per kind, from what the readers find one by one."""

from collections.abc import Collection, Iterable

import msgspec

from .topology import Cache, usable_cache


class FoundCache(msgspec.Struct, frozen=True):
    """One cache: level, bytes, ways (0 unknown or fully associative), the cpus that share it."""

    level: int
    bytes: int
    ways: int
    cpus: frozenset[int]
    inclusive: bool | None = None


def cache_kinds(found: Iterable[FoundCache], usable: Collection[int]) -> tuple[Cache, ...]:
    """The kinds of caches by level, the larger first; cpus that are not usable are left out, and so is
    a cache that none of these has, whose size is not known, or that shares a cpu with one of its level that
    was found before: firmware may say so, and one wrong cache must not make a machine unreadable."""
    taken: dict[int, set[int]] = {}
    shares: dict[tuple[int, int, int, bool | None], set[tuple[int, ...]]] = {}
    known = frozenset(usable)
    for one in found:
        cpus = tuple(sorted(one.cpus & known))
        level = taken.setdefault(one.level, set())
        if cpus and usable_cache(one.level, one.bytes, one.ways) and level.isdisjoint(cpus):
            level.update(cpus)
            shares.setdefault((one.level, one.bytes, one.ways, one.inclusive), set()).add(cpus)
    return tuple(
        Cache(level=level, bytes=size, ways=ways, inclusive=inclusive, cpus=tuple(sorted(groups)))
        for (level, size, ways, inclusive), groups in sorted(
            shares.items(), key=lambda item: (item[0][0], -item[0][1], -item[0][2])
        )
    )
