"""A plain model of caches that threads share: the rules of the emulation's, written without its tricks."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

Shape = tuple[int, int]


class Level:
    """A set-associative cache with one `used` bit a way: all but the last are cleared when all are set."""

    def __init__(self, sets: int, ways: int) -> None:
        self.sets, self.ways = sets, ways
        self.lines: list[list[int | None]] = [[None] * ways for _ in range(sets)]
        self.used = [set[int]() for _ in range(sets)]

    def __contains__(self, line: int) -> bool:
        return line in self.lines[line % self.sets]

    def touch(self, line: int) -> bool:
        """Whether the line is there; it is then used."""
        at = line % self.sets
        if line not in self.lines[at]:
            return False
        self._use(at, self.lines[at].index(line))
        return True

    def _use(self, at: int, way: int) -> None:
        self.used[at].add(way)
        if len(self.used[at]) == self.ways:
            self.used[at] = {way}

    def insert(self, line: int) -> int | None:
        """Put a line in; returns the one that had to go."""
        at = line % self.sets
        way = next((way for way in range(self.ways) if way not in self.used[at]), 0)  # 0: the only one
        old, self.lines[at][way] = self.lines[at][way], line
        self._use(at, way)
        return old

    def drop(self, line: int | None) -> None:
        """Take a line out, if it is there."""
        if line is not None and line in self:
            at = line % self.sets
            way = self.lines[at].index(line)
            self.lines[at][way] = None
            self.used[at].discard(way)


@dataclass
class Thread:
    """One thread's seat and private caches; the lists of `l1` go from the newest to the oldest line."""

    node: int
    domain: int
    l2: Level
    l1: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    l1_owned: set[int] = field(default_factory=set)
    l2_owned: set[int] = field(default_factory=set)


class Domain:
    """The threads of one L3. `known`: lines in any of its caches; `data`: what a victim L3 itself holds."""

    def __init__(self, node: int, known: Shape, data: Shape | None) -> None:
        self.node, self.known, self.data = node, Level(*known), Level(*data) if data else None
        self.sharers: dict[int, set[int]] = {}
        self.owned = set[int]()


def directory_shape(l2: Shape, l3: Shape, cpus: int) -> Shape:
    """Twice the room for what a domain's caches can hold, in 16 ways."""
    sets = 512
    while sets * 8 < l3[0] * l3[1] + cpus * l2[0] * l2[1]:
        sets *= 2
    return sets, 16


class Model:
    """Levels of accesses by threads whose seats are (node, domain); nodes and domains from 0."""

    def __init__(
        self, seats: Sequence[tuple[int, int]], l1: Shape, l2: Shape, l3: Shape, inclusive: bool
    ) -> None:
        nodes = {domain: node for node, domain in seats}
        known = l3 if inclusive else directory_shape(l2, l3, -(-len(seats) // len(nodes)))
        self.domains = [Domain(nodes[d], known, None if inclusive else l3) for d in sorted(nodes)]
        self.threads = [Thread(node, domain, Level(*l2)) for node, domain in seats]
        self.l1_sets, self.l1_ways = l1
        self.homes: dict[int, int] = {}
        self.touched: dict[int, set[int]] = defaultdict(set)

    def access(self, number: int, line: int, store: bool) -> str:
        """The level that serves thread `number`."""
        thread = self.threads[number]
        own = thread.l1[line % self.l1_sets]
        level = "l1"
        if line not in own:
            level = self._beyond(number, line, store)
        elif store and line not in thread.l1_owned:
            served, contended = self._shared(number, line, store=True)
            level = served if contended else "l1"
            thread.l2_owned.add(line)
            thread.l1_owned.add(line)
        if line in own:
            own.remove(line)
        own.insert(0, line)
        thread.l1_owned -= set(own[self.l1_ways :])
        del own[self.l1_ways :]
        return level

    def _beyond(self, number: int, line: int, store: bool) -> str:
        thread = self.threads[number]
        level = "l2"
        if not thread.l2.touch(line):
            level, _contended = self._shared(number, line, store)
            old = thread.l2.insert(line)
            if old is not None:
                self._drop_l1(thread, old)
                thread.l2_owned.discard(old)
                data = self.domains[thread.domain].data
                if data and not data.touch(old):
                    data.insert(old)
        elif store and line not in thread.l2_owned:
            served, contended = self._shared(number, line, store=True)
            level = served if contended else "l2"
        if store:
            thread.l2_owned.add(line)
        if line in thread.l2_owned:
            thread.l1_owned.add(line)
        return level

    def _shared(self, number: int, line: int, store: bool) -> tuple[str, bool]:
        """The level beyond the private caches that has the line, and whether others had to act."""
        thread = self.threads[number]
        domain = self.domains[thread.domain]
        home = self.homes.setdefault(line // 64, thread.node)
        self.touched[line // 64].add(thread.domain)
        level = "local_dram" if home == thread.node else "remote_dram"
        hit, local, remote = line in domain.known, False, "none"
        if not hit or store:
            remote = self._ask_others(thread, line, store)
        if hit:
            level = "l3" if self._has(thread.domain, line) else level
            if store or line in domain.owned:
                local = self._take(domain.sharers[line] - {number}, line, keep=not store)
            domain.sharers[line] = {number} if store else domain.sharers[line] | {number}
            domain.known.touch(line)
        else:
            self._forget(domain, domain.known.insert(line))
            domain.sharers[line] = {number}
            domain.owned.discard(line)
        if store:
            domain.owned.add(line)
        contended = local or remote in ("near", "dirty") or (store and remote == "clean")
        return {"dirty": "remote_cache", "near": "l3"}.get(remote, level), contended

    def _ask_others(self, thread: Thread, line: int, store: bool) -> str:
        found = "none"
        for number in sorted(self.touched[line // 64] - {thread.domain}):
            domain = self.domains[number]
            if line not in domain.known:
                continue
            there = self._has(number, line)
            owned = there and line in domain.owned
            had = (
                ("near" if domain.node == thread.node else "dirty") if owned else "clean" if there else "none"
            )
            if store or owned:
                self._take(domain.sharers[line], line, keep=not store)
            domain.owned.discard(line)
            if store:
                domain.known.drop(line)
                if domain.data:
                    domain.data.drop(line)
            found = max(found, had, key=["none", "clean", "near", "dirty"].index)
        return found

    def _has(self, domain: int, line: int) -> bool:
        data = self.domains[domain].data
        if data is None or data.touch(line):
            return True
        return any(line in self.threads[number].l2 for number in self.domains[domain].sharers[line])

    def _forget(self, domain: Domain, line: int | None) -> None:
        if line is None:
            return
        self._take(domain.sharers[line], line, keep=False)
        if domain.data:
            domain.data.drop(line)

    def _take(self, numbers: set[int], line: int, keep: bool) -> bool:
        """Take a line (keep: only its ownership) from threads; whether any had it."""
        had = False
        for thread in (self.threads[number] for number in sorted(numbers)):
            if line not in thread.l2:
                continue
            owned = line in thread.l2_owned
            thread.l2_owned.discard(line)
            thread.l1_owned.discard(line)
            had |= owned or not keep
            if not keep:
                thread.l2.drop(line)
                self._drop_l1(thread, line)
        return had

    def _drop_l1(self, thread: Thread, line: int) -> None:
        thread.l1_owned.discard(line)
        if line in thread.l1[line % self.l1_sets]:
            thread.l1[line % self.l1_sets].remove(line)
