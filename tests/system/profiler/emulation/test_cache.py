"""The plugin's cache model against a plain one of the same rules, on random accesses that are emulated."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, strategies as st

from numaplan.machine import size_word
from numaplan.profiler.trace.schema import LEVEL_CODE
from tests.support.cache_model import Level, Model
from tests.support.emulating import BASE, MARKS, Recorder, Seen
from tests.support.programs import OPTIMISED, PROGRAMS, compiled
from tests.support.properties import examples
from tests.support.reach_model import Reach

pytestmark = MARKS
LINE = 64


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
def program() -> Path:
    # Static: a loader reads files and unmaps them, of which the plain model sees nothing.
    return compiled(PROGRAMS / "recording/random_lines.c", flags=(*OPTIMISED, "-D_GNU_SOURCE", "-static"))


def sizes_of(seen: Seen) -> list[int]:
    return [int(size) for size in seen.recording.notes["llc_sizes"].split(":")]


@pytest.mark.slow
@examples(12, phases=[Phase.generate])
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
    addresses = seen.samples["addr"]
    sizes, reach = sizes_of(seen), Reach(sizes_of(seen))
    for address, level, store, past in zip(
        *(seen.samples[name].tolist() for name in ("addr", "level", "is_write", "reach")), strict=True
    ):
        found[codes[level], codes[level] == model.access(address // LINE, store)] += 1
        least, most = reach.access(0, address // LINE, store, codes[level] != "l1")
        assert least <= past <= most
    for place, size in enumerate(sizes):
        missed = sum(seen.counter(f"llc_misses_at_{size_word(size)}").values())
        assert missed == int((seen.samples["reach"] > place).sum())
    assert len(sizes) >= 3 and len(set(seen.samples["reach"].tolist())) > 2
    assert sum(count for (_level, same), count in found.items() if not same) == 0, found
    mine = (addresses >= BASE) & (addresses < BASE + (np.uint64(lines) << np.uint64(6)))
    assert int(mine.sum()) == 6000


# Nodes of cpus, and the cpus of each L3: one a node, two a node, one a node of three threads.
MACHINES: dict[str, tuple[list[list[int]], list[list[int]]]] = {
    "node": ([[0, 1, 2], [3, 4, 5]], [[0, 1, 2], [3, 4, 5]]),
    "part": ([[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 1], [2, 3], [4, 5], [6, 7]]),
    "three": ([[0, 1], [2, 3], [4, 5]], [[0, 1], [2, 3], [4, 5]]),
}


@pytest.fixture(scope="module")
def sharing() -> Path:
    bare = ("-nostdlib", "-static", "-fno-stack-protector", "-fno-pie", "-no-pie", "-mgeneral-regs-only")
    return compiled(PROGRAMS / "recording/shared_lines.c", flags=(*OPTIMISED, *bare))


@pytest.mark.slow
@examples(16, phases=[Phase.generate])
@given(
    seed=st.integers(1, 1 << 30),
    lines=st.sampled_from([16, 400, 4096]),
    machine=st.sampled_from(sorted(MACHINES)),
    l1=st.sampled_from([(1, 4), (8, 2), (16, 3)]),
    l2=st.sampled_from([(512, 1), (512, 2)]),
    l3=st.sampled_from([(512, 2), (512, 5), (1024, 3)]),
    inclusive=st.booleans(),
)
def test_threads_that_share_lines_get_the_levels_of_a_plain_model(
    sharing: Path,
    tmp_path: Path,
    seed: int,
    lines: int,
    machine: str,
    l1: tuple[int, int],
    l2: tuple[int, int],
    l3: tuple[int, int],
    inclusive: bool,
) -> None:
    nodes, parts = MACHINES[machine]
    seats = [
        (node, next(number for number, part in enumerate(parts) if cpu in part))
        for node, cpus in enumerate(nodes)
        for cpu in cpus
    ]
    shapes = zip((1, 2, 3), (l1, l2, l3), strict=True)
    described = {
        "schema": "numaplan/machine/1",
        "nodes": [{"id": node, "cpus": cpus} for node, cpus in enumerate(nodes)],
        "caches": [
            {"level": level, "bytes": sets * ways * LINE, "ways": ways, "inclusive": inclusive}
            | {"cpus": parts if level == 3 else [[cpu] for cpu in range(len(seats))]}
            for level, (sets, ways) in shapes
        ],
    }
    (tmp_path / "machine.json").write_text(json.dumps(described))
    record = Recorder(sharing, tmp_path)
    seen = record(seed, lines, 3000, len(seats), machine=str(tmp_path / "machine.json"))
    assert seen.recording.exit_code == 0
    model = Model(seats, l1, l2, l3, inclusive)
    codes = {code: name for name, code in LEVEL_CODE.items()}
    order = np.argsort(seen.samples["time_ns"], kind="stable")
    columns = (seen.samples[name][order].tolist() for name in ("cpu", "addr", "level", "is_write", "reach"))
    found = Counter[tuple[str, bool]]()
    reach = Reach(sizes_of(seen))
    for cpu, address, level, store, past in zip(*columns, strict=True):
        line = address // LINE
        missed = line not in model.threads[cpu].l1[line % l1[0]]
        found[codes[level], codes[level] == model.access(cpu, line, store)] += 1
        least, most = reach.access(seats[cpu][1], line, store, missed)
        assert least <= past <= most
    larger = [int(size) for size in seen.recording.notes["llc_larger"].split(":")]
    fewest = [sum(seen.counter(f"llc_misses_at_{size_word(size)}").values()) for size in larger]
    missed = sum(seen.counter(f"llc_misses_at_{size_word(sizes_of(seen)[-1])}").values())
    assert [missed, *fewest] == sorted([missed, *fewest], reverse=True) and fewest[-1] > 0
    assert sum(count for (_level, same), count in found.items() if not same) == 0, found
    assert found["remote_cache", True] > 0 and len(order) > 3000 * len(seats)


def asked(columns: Iterable[tuple[int, int, bool]], *, alone: bool) -> Counter[int]:
    """Accesses by thread that would ask another's caches, if each had some of its own that lose nothing.

    columns: thread, address, whether it stores; alone: whether what a thread has only read counts as long as
    it is the only one that has touched the page.
    """
    answer = Counter[int]()
    writer: dict[int, int] = {}
    having: dict[int, set[int]] = defaultdict(set)
    users: dict[int, set[int]] = defaultdict(set)
    for thread, address, store in columns:
        line, page = address // LINE, users[address // 4096]
        page.add(thread)
        others = having[line] - {thread}
        first = thread not in having[line] and others == {writer.get(line)}
        answer[thread] += bool(others) if store else first
        if store:
            having[line], writer[line] = {thread}, thread
        elif alone or len(page) > 1:
            having[line].add(thread)
    return answer


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize(("threads", "lines"), [(3, 400), (3, 4096), (14, 4096)])
def test_what_threads_with_one_cache_would_ask_for_if_each_had_its_own(
    sharing: Path, tmp_path: Path, threads: int, lines: int, inclusive: bool
) -> None:
    """Their own caches hold little, and the one that they share all: what passes through it is counted."""
    sizes = {1: 2 << 10, 2: 32 << 10, 3: 8 << 20}
    described = {
        "schema": "numaplan/machine/1",
        "nodes": [{"id": 0, "cpus": list(range(threads))}],
        "caches": [
            {"level": level, "bytes": size, "ways": 8, "inclusive": inclusive}
            | {"cpus": [list(range(threads))] if level == 3 else [[cpu] for cpu in range(threads)]}
            for level, size in sizes.items()
        ],
    }
    (tmp_path / "machine.json").write_text(json.dumps(described))
    record = Recorder(sharing, tmp_path)
    seen = record(5, lines, 6000, threads, machine=str(tmp_path / "machine.json"))
    order = np.argsort(seen.samples["time_ns"], kind="stable")
    columns = [seen.samples[name][order].tolist() for name in ("tid", "addr", "is_write")]
    least, most = (asked(zip(*columns, strict=True), alone=alone) for alone in (False, True))
    within, kept = seen.counter("coherence_within_l3"), seen.counter("l3_hits_on_others_lines")
    assert seen.counter("coherence") == within and (min(kept.values()) > 100 or lines == 400)
    assert all(least[tid] <= within[tid] + kept[tid] <= most[tid] for tid in within)
    assert sum(most.values()) - sum(least.values()) < lines
