"""The caches to model, as a machine has them, in the words of the model (native/caches).

Emulation models them for threads, the lab for the cpus of its virtual machine.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import log2

from numaplan.common import UsageError

from .model import Machine
from .topology import Cache

LINE = 64
MAX_WAYS = 32
# Tags of L2 and L3 have 32 bits, which takes this many sets to tell all addresses apart.
SETS = {"l1": (1, 1 << 16), "l2": (512, 1 << 22), "l3": (512, 1 << 22)}
# Where the machine does not say: SIZE:WAYS of each cpu's or thread's caches, and of the shared one.
USUAL_CACHES = {"l1": "32K:8", "l2": "1M:16", "l3": "32M:16", "l3_inclusive": "yes"}
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_LEVELS = {1: "l1", 2: "l2", 3: "l3"}
_USUAL_WAYS = 16
MOST_SIZES = 15  # of last-level caches that are modelled at once
MOST_LARGER = 3  # of them, larger than the machine's


def cache_shape(name: str, text: str) -> str:
    """`SETS:WAYS` for `SIZE:WAYS`; raises UsageError when no such cache can be modelled."""
    match = re.fullmatch(r"([0-9]{1,9})([KMG]?)B?:([0-9]{1,3})", text.strip().upper())
    low, high = SETS[name]
    hint = f"give SIZE:WAYS such as {USUAL_CACHES[name]}, with {low} to {high} sets of up to {MAX_WAYS} ways"
    if match is None:
        raise UsageError(f"{name}={text}: not a cache", hint)
    size, ways = int(match[1]) * _UNITS[match[2]], int(match[3])
    if not 1 <= ways <= MAX_WAYS or size % (ways * LINE):
        raise UsageError(f"{name}={text}: not a whole number of sets", hint)
    sets = size // (ways * LINE)
    if not low <= sets <= high or sets & (sets - 1):
        raise UsageError(f"{name}={text}: {sets} sets, which must be a power of two", hint)
    return f"{sets}:{ways}"


def modelled_shape(name: str, size: int, ways: int) -> tuple[int, int]:
    """(sets, ways) of the cache that can be modelled (sets a power of two) nearest to one of `size` bytes.

    The size counts most: within 1/64 of the best, the number of ways that is nearest decides.
    """
    low, high = SETS[name]
    lines = max(size // LINE, 1)
    shapes = []
    for sets in (1 << power for power in range(low.bit_length() - 1, high.bit_length())):
        near = min(max(round(lines / sets), 1), MAX_WAYS)
        shapes.append((abs(log2(sets * near / lines)), sets, near))
    best = min(shapes)[0]
    good = [shape for shape in shapes if shape[0] <= best + 1 / 64]
    wanted = min(ways or _USUAL_WAYS, MAX_WAYS)
    _error, sets, near = min(good, key=lambda shape: (abs(log2(shape[2] / wanted)), shape))
    return sets, near


def machine_shapes(machine: Machine) -> dict[str, str]:
    """`SETS:WAYS` of each level that the machine describes, by `l1` to `l3`, and `l3_inclusive`.

    Where cores differ, as the most cpus have it.
    """
    words = {}
    for level, name in _LEVELS.items():
        kind = _commonest(cache for cache in machine.caches if cache.level == level)
        if kind:
            sets, ways = modelled_shape(name, kind.bytes, kind.ways)
            words[name] = f"{sets}:{ways}"
            if level == max(_LEVELS) and kind.inclusive is not None:
                words["l3_inclusive"] = "yes" if kind.inclusive else "no"
    return words


def size_word(size: int) -> str:
    """A size in the words of the options: 32M, 1152K, 100."""
    unit = max((unit for unit, value in _UNITS.items() if size % value == 0), key=_UNITS.__getitem__)
    return f"{size // _UNITS[unit]}{unit}"


def last_level_sizes(words: Mapping[str, str], machine: Machine | None) -> list[int]:
    """Bytes of the last-level caches that emulation tells apart, ascending, each half the next.

    The last is what the largest L3 and the caches before it hold together; none is less than two L1s, which
    decide what an L3 is asked for. words: as the model is told.
    """
    l1, l2, l3 = (
        int(sets) * int(ways) * LINE
        for sets, _, ways in (words[name].partition(":") for name in _LEVELS.values())
    )
    whole = l3 if words["l3_inclusive"] == "yes" else l3 + _most_cpus_of_an_l3(machine) * l2
    halves = [whole >> half for half in reversed(range(MOST_SIZES - MOST_LARGER))]
    return [size // LINE * LINE for size in halves if size >= 2 * l1 or size == whole]


def larger_sizes(size: int, machine: Machine | None) -> list[int]:
    """Bytes of larger ones, each twice the one before: up to what all of the machine's L3s hold together.

    That is what threads have which are alone with an L3 each, and shared one when they were recorded.
    """
    most = len(set(_l3_of_cpus(machine)))
    return [size << double for double in range(1, MOST_LARGER + 1) if 1 << double <= most]


def _most_cpus_of_an_l3(machine: Machine | None) -> int:
    domains = _l3_of_cpus(machine)
    return max(map(domains.count, set(domains)), default=1)


def _l3_of_cpus(machine: Machine | None) -> list[int]:
    """Of each cpu, the number of its L3."""
    return domains_of(machine, [(cpu, machine.node_of_cpu[cpu]) for cpu in machine.cpus]) if machine else []


def _commonest(kinds: Iterable[Cache]) -> Cache | None:
    return max(kinds, key=lambda kind: (sum(map(len, kind.cpus)), kind.bytes), default=None)


def domains_of(machine: Machine, seats: Sequence[tuple[int, int]]) -> list[int]:
    """The last-level cache of each (cpu, node), numbered from 0; one that spans nodes counts as one a node.

    As the cores say, which plans keep, too; of cpus whose core does not, as the list of caches does.
    """
    of_cores = {cpu: (0, core.l3) for core in machine.cores if core.l3 is not None for cpu in core.cpus}
    listed = (cpus for kind in machine.caches if kind.level == 3 for cpus in kind.cpus)
    of_caches = {cpu: (1, number) for number, cpus in enumerate(listed) for cpu in cpus}
    found = of_caches | of_cores
    keys = [(node, found.get(cpu, (-1, 0))) for cpu, node in seats]
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    return [numbers[key] for key in keys]


def seat_arguments(machine: Machine) -> list[str]:
    """Where each cpu is, ascending, as the model is told: `cpus=NODE:…`, and `domains=L3:…` where need be."""
    seats = [(cpu, machine.node_of_cpu[cpu]) for cpu in machine.cpus]
    nodes = sorted({node for _, node in seats})
    places = [nodes.index(node) for _, node in seats]
    domains = domains_of(machine, seats)
    words = ["cpus=" + ":".join(map(str, places))]
    return words if domains == places else [*words, "domains=" + ":".join(map(str, domains))]


def cache_arguments(machine: Machine) -> list[str]:
    """The caches, as the model is told: `l1=SETS:WAYS` and so on, usual ones where the machine has none."""
    usual = {name: cache_shape(name, USUAL_CACHES[name]) for name in _LEVELS.values()}
    found = {**USUAL_CACHES, **usual, **machine_shapes(machine)}
    return [f"{name}={word}" for name, word in found.items()]
