"""The plugin's cache model against a plain one of the same rules, on random accesses that are emulated."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from numaplan.profiler.trace.schema import LEVEL_CODE
from tests.system.commands import compiled
from tests.system.emulating import BASE, MARKS, Recorder

pytestmark = MARKS
LINE = 64


class Level:
    """A set-associative cache with one `used` bit a way: all but the last are cleared when all are set."""

    def __init__(self, sets: int, ways: int) -> None:
        self.sets, self.ways = sets, ways
        self.lines: list[list[int | None]] = [[None] * ways for _ in range(sets)]
        self.used = [set[int]() for _ in range(sets)]

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
        if line is not None and line in self.lines[line % self.sets]:
            at = line % self.sets
            way = self.lines[at].index(line)
            self.lines[at][way] = None
            self.used[at].discard(way)


class Inclusive:
    """One thread's three levels: the first by true age, the others by `used` bits, each inside the next.

    The first store to a line that loads brought in asks the third level, where that counts as a use.
    """

    def __init__(self, l1: tuple[int, int], l2: tuple[int, int], l3: tuple[int, int]) -> None:
        self.l1_sets, self.l1_ways = l1
        self.l1: list[list[int]] = [[] for _ in range(self.l1_sets)]
        self.l2, self.l3 = Level(*l2), Level(*l3)
        self.written = set[int]()

    def access(self, line: int, store: bool) -> str:
        own = self.l1[line % self.l1_sets]
        level = "l1" if line in own else self._beyond(line)
        if store and line not in self.written:
            self.l3.touch(line)
            self.written.add(line)
        if line in own:
            own.remove(line)
        own.insert(0, line)
        del own[self.l1_ways :]
        return level

    def _beyond(self, line: int) -> str:
        if self.l2.touch(line):
            return "l2"
        level = "l3"
        if not self.l3.touch(line):
            level = "local_dram"
            self._leave(self.l3.insert(line))
        self._leave(self.l2.insert(line))
        return level

    def _leave(self, line: int | None) -> None:
        if line is None:
            return
        self.l2.drop(line)
        self.written.discard(line)
        if line in self.l1[line % self.l1_sets]:
            self.l1[line % self.l1_sets].remove(line)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent / "programs" / "random_lines.c"
    return compiled(source, tmp_path_factory.mktemp("lines"), "-D_GNU_SOURCE")


@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(1, 1 << 30),
    lines=st.sampled_from([64, 3000, 40_000]),
    l1=st.sampled_from([(1, 4), (8, 2), (64, 8), (16, 3)]),
    l2=st.sampled_from([(512, 1), (512, 4), (1024, 5)]),
    l3=st.sampled_from([(512, 8), (1024, 16), (2048, 3)]),
)
def test_levels_are_those_of_a_plain_model(
    program: Path,
    tmp_path: Path,
    seed: int,
    lines: int,
    l1: tuple[int, int],
    l2: tuple[int, int],
    l3: tuple[int, int],
) -> None:
    shapes = {"l1": l1, "l2": l2, "l3": l3}
    options = {name: f"{sets * ways * LINE}:{ways}" for name, (sets, ways) in shapes.items()}
    seen = Recorder(program, tmp_path)(seed, lines, 6000, machine="1x1", options=options)
    model = Inclusive(l1, l2, l3)
    found = Counter[tuple[str, bool]]()
    codes = {code: name for name, code in LEVEL_CODE.items()}
    addresses, levels, stores = (seen.samples[name] for name in ("addr", "level", "is_write"))
    for address, level, store in zip(addresses.tolist(), levels.tolist(), stores.tolist(), strict=True):
        found[codes[level], codes[level] == model.access(address // LINE, store)] += 1
    assert sum(count for (_level, same), count in found.items() if not same) == 0, found
    mine = (addresses >= BASE) & (addresses < BASE + (np.uint64(lines) << np.uint64(6)))
    assert int(mine.sum()) == 6000
