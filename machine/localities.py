"""NUMA nodes as a kernel or a file lists them, where one cpu can be in several lists."""

from collections.abc import Collection, Iterable

import msgspec

from .topology import Node


class Locality(msgspec.Struct, frozen=True):
    """A node as it is listed: the usable cpus that it is near to, bytes, whether it is main memory (not HBM
    or a device's), whether its memory may be used."""

    id: int
    cpus: frozenset[int]
    memory: int
    main: bool = True
    allowed: bool = True


def nodes_of(listed: Collection[Locality]) -> list[Node]:
    """The nodes by id, each cpu in one of them: the one with the narrowest list, main memory first, then the
    lowest id. The others keep their memory; a node that keeps neither is dropped."""
    owner: dict[int, int] = {}
    for place in sorted(listed, key=lambda place: (len(place.cpus), not place.main, place.id)):
        for cpu in place.cpus:
            owner.setdefault(cpu, place.id)
    nodes = []
    for place in sorted(listed, key=lambda place: place.id):
        cpus = tuple(sorted(cpu for cpu in place.cpus if owner[cpu] == place.id))
        if cpus or place.allowed:
            nodes.append(Node(id=place.id, cpus=cpus, memory_bytes=place.memory if place.allowed else 0))
    return nodes


def nodeless(usable: Iterable[int], nodes: Iterable[Node]) -> tuple[int, ...]:
    """The cpus that are in none of the nodes, as where a node is offline or left out of a file."""
    return tuple(sorted(set(usable).difference(*(node.cpus for node in nodes))))
