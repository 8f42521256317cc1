"""How many of several last-level caches miss an access: each by itself, fully associative, LRU."""

from collections import OrderedDict, defaultdict
from collections.abc import Sequence

LINE = 64
GRAINS = 16  # groups of lines in the smallest cache; the emulation evicts by group
Bounds = tuple[int, int]
Caches = list[OrderedDict[int, None]]


class Reach:
    """For each domain the caches of all sizes, and of what is left of them when a whole group has to go.

    written: lines that a domain has written, and that no other has touched since.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.lines = [size // LINE for size in sizes]
        grain = self.lines[0] // GRAINS + 1
        self.rooms = [*self.lines, *(room - grain for room in self.lines)]
        self.caches: dict[int, Caches] = defaultdict(lambda: [OrderedDict() for _ in self.rooms])
        self.known: dict[int, set[int]] = defaultdict(set)
        self.written: dict[int, set[int]] = defaultdict(set)

    def access(self, domain: int, line: int, store: bool, missed: bool) -> Bounds:
        """The least and the most that the emulation may say; missed: whether the thread's L1 did."""
        taken = self._take(domain, line, store) if missed or store else self._none
        if not missed:
            return 0, 0
        own = self._bounds(domain, line)
        self.known[domain].add(line)
        for room, cache in zip(self.rooms, self.caches[domain], strict=True):
            cache[line] = None
            cache.move_to_end(line)
            if len(cache) > room:
                cache.popitem(last=False)
        return min(own[0], taken[0]), min(own[1], taken[1])

    @property
    def _none(self) -> Bounds:
        return len(self.lines), len(self.lines)

    def _take(self, domain: int, line: int, store: bool) -> Bounds:
        found = self._none
        if line in (self.written if store else self.known)[domain]:
            return found
        for other in [key for key in self.known if key != domain and line in self.known[key]]:
            if line in self.written[other]:
                bounds = self._bounds(other, line)
                found = min(found[0], bounds[0]), min(found[1], bounds[1])
            self.written[other].discard(line)
            if store:
                self.known[other].discard(line)
                for cache in self.caches[other]:
                    cache.pop(line, None)
        if store:
            self.written[domain].add(line)
        return found

    def _bounds(self, domain: int, line: int) -> Bounds:
        missing = [line not in cache for cache in self.caches[domain]]
        half = len(self.lines)
        return sum(missing[:half]), sum(missing[half:])
