"""Who uses which page with another number of threads, by what was recorded of several numbers.

Regions are those of the largest recording. Of each it is told what of it follows the threads: a part each
(followed.py), one thread's alone, everybody's alike, or what nobody knows (`unfollowed`). Regions that each
member of the team makes for itself, and those that one thread makes for each member, become as many as there
are members.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.profiler import RegionKey

from ..threads.problem import Floats, Nodes
from .followed import followed_units
from .rows import CELLS, PageRows, Scale
from .sequences import Recording, Sequences, same_place
from .units import BINS, Units, in_a_row, units_in_row
from .use import Use

ONE = 0.9  # of a region's accesses, from which it is one thread's
GOLDEN = 0.618034  # deals neighbouring pages evenly

Rows = tuple[Floats, Nodes, Floats]  # (R,) where in a region (0..1) which member makes how many accesses


def scaled_pages(recordings: Sequence[Recording], scale: Scale, row_of: Callable[[str], str]) -> PageCounts:
    """The page counts of the wanted number of threads; recordings: the largest last.

    row_of: the creation path of a thread that is no member, in the wanted number.
    """
    return _Writer(recordings, scale, row_of).write()


class _Writer:
    def __init__(self, recordings: Sequence[Recording], scale: Scale, row_of: Callable[[str], str]) -> None:
        self.recordings, self.scale, self.row_of = recordings, scale, row_of
        self.last = recordings[-1]
        self.stats = self.last.pages
        self.sequences = Sequences(recordings)
        self.new = PageRows(self.stats, self.last.member_of, scale)
        self.rows = self.last.rows

    def write(self) -> PageCounts:
        """All regions, one place in the code after another."""
        member_paths = {
            self.last.paths[number]: place for place, number in enumerate(self.scale.team.members)
        }
        known = set(self.last.paths)
        leader = self.last.paths[self.scale.team.members[0]] if self.scale.team.leads else ""
        sites: dict[tuple[str, ...], list[int]] = defaultdict(list)
        own: dict[int, list[int]] = defaultdict(list)
        for number, key in enumerate(self.stats.regions):
            # What threads of later teams make is what those of the first one made (rounds.py).
            if not len(self.rows[number]) or (key.thread and key.thread not in known):
                continue
            if key.thread in member_paths and key.thread != leader and key.kind != "static":
                own[member_paths[key.thread]].append(number)
            else:
                sites[same_place(key)].append(number)
        for site, numbers in sites.items():
            self._site(site, numbers)
        first = 1 if leader else 0
        for member in range(first, self.scale.n):
            stands = max(self.scale.stands_for(member), first)
            for number in own[stands]:
                self._own(number, stands, member)
        return self.new.together()

    # ---- regions that a thread makes for the team, or for itself ----

    def _site(self, site: tuple[str, ...], numbers: list[int]) -> None:
        counts = [len(one.of_site(site)) for one in self.recordings]
        teams = [len(one.team) for one in self.recordings]
        if len(numbers) == counts[-1] and in_a_row(counts, teams):
            units = self._row_units(numbers)
            if units is not None:
                self._in_row(site, numbers, units)
                return
        for number in numbers:
            at = self.last.of_site(site).index(self.stats.regions[number])
            key = self.sequences.key(site, at, self.scale.n, self.stats.regions[number])
            uses = [use for one in self.recordings if (use := one.use_at(site, at)) is not None]
            self._region(number, self._named(key), uses)

    def _named(self, key: RegionKey) -> RegionKey:
        """The key with its thread's creation path in the wanted number."""
        return replace(key, thread=self.row_of(key.thread)) if key.thread else key

    def _row_units(self, numbers: list[int]) -> Units | None:
        uses = [self.last.use(number) for number in numbers]
        unit = np.repeat(np.arange(len(numbers)), [len(use.at) for use in uses])
        parts = [(use.at, use.member, use.made) for use in uses]
        at, member, made = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return units_in_row(unit, at, member, made, len(numbers), len(self.scale.team))

    def _in_row(self, site: tuple[str, ...], numbers: list[int], units: Units) -> None:
        unit, part, member, made = units.of(self.scale.n)
        size = float(np.median([self.stats.regions[number].bytes for number in numbers]))
        rows = np.concatenate([self.rows[number] for number in numbers])
        for number in range(units.count(self.scale.n)):
            stands = min(number * len(numbers) // units.count(self.scale.n), len(numbers) - 1)
            model = self.stats.regions[numbers[stands]]
            key = self.sequences.key_in_row(site, number, self.scale.n, replace(model, bytes=int(size)))
            key = self._named(key)
            own = unit == number
            at = (part[own] + 0.5) / BINS
            self.new.add(
                key, numbers[stands], rows, at, self.scale.members[member[own]], made[own], len(numbers)
            )

    def _region(self, number: int, key: RegionKey, uses: Sequence[Use]) -> None:
        """uses: of the region in the recordings that have it."""
        found = followed_units(uses, self.scale.n, key.bytes)
        if found.fixed:
            self.new.fixed.add(key)
        if found.units is not None:
            unit, part, who, made = found.units.of(self.scale.n)
            at = (unit + (part + 0.5) / BINS) / found.units.count(self.scale.n)
        elif found.contradicted:
            at, who, made = self._by_chance(key, uses[-1])
        else:
            at, who, made = self._without_parts(key, uses[-1])
        self.new.add(key, number, self.rows[number], at, self.scale.members[who], made)

    def _without_parts(self, key: RegionKey, use: Use) -> Rows:
        """One thread's alone, everybody's alike, or nobody knows whose."""
        if not len(use.at):
            return use.at, use.member, use.made
        by_member = use.by_member
        if by_member.max() >= ONE * by_member.sum() and len(by_member) > 1:
            who = np.full(len(use.at), self.scale.home_of(int(by_member.argmax())))
            return use.at, who, use.made
        return self._even(use) if use.alike else self._by_chance(key, use)

    def _even(self, use: Use) -> Rows:
        """By nobody in particular: the first member as it is, and all others alike."""
        cells, first = np.minimum((use.at * CELLS).astype(np.int64), CELLS - 1), use.member == 0
        led = np.bincount(cells[first], use.made[first], CELLS)
        rest = np.bincount(cells[~first], use.made[~first], CELLS) / max(use.team - 1, 1)
        cell, who = (
            axis.ravel() for axis in np.meshgrid(np.arange(CELLS), np.arange(self.scale.n), indexing="ij")
        )
        made = np.where(who == 0, led[cell], rest[cell])
        kept = made > 0
        return (cell[kept] + 0.5) / CELLS, who[kept], made[kept]

    def _by_chance(self, key: RegionKey, use: Use) -> Rows:
        """Each page by as few as in the recording, but nobody knows by whom."""
        self.new.unfollowed.add(key)
        n, team = self.scale.n, use.team
        chosen = np.minimum(((use.member + use.page * GOLDEN % 1) * n / team).astype(np.int64), n - 1)
        return use.at, chosen, use.made * (n / team)

    def _own(self, number: int, stands: int, member: int) -> None:
        """A region of a member's own; who else uses it is as far away."""
        use, key = self.last.use(number), self.stats.regions[number]
        who = self.scale.members[np.clip(use.member - stands + member, 0, self.scale.n - 1)]
        path = self.scale.team.path(member)
        self.new.add(replace(key, thread=path), number, self.rows[number], use.at, who, use.made)
