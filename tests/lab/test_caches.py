"""What leaves the caches of the virtual machine is what programs make leave them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from numaplan.lab.runs.session import Request, open_session
from numaplan.machine import ACCESS_NS
from numaplan.profiler import Trace
from tests.support.commands import needs, succeed
from tests.support.guests import SharedGuest, guest_program, silent

pytestmark = pytest.mark.lab

LINE = 64
L3 = 1 << 20


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes of two cpus, each node with an L3 of 1 MiB."""
    kinds = [(1, 1 << 14, 8, [[0], [1], [2], [3]]), (2, 1 << 17, 16, [[0], [1], [2], [3]])]
    kinds.append((3, L3, 16, [[0, 1], [2, 3]]))
    caches = [
        {"level": level, "bytes": size, "ways": ways, "cpus": cpus} for level, size, ways, cpus in kinds
    ]
    nodes = [{"id": 0, "cpus": [0, 1]}, {"id": 1, "cpus": [2, 3]}]
    path = tmp_path_factory.mktemp("machine") / "machine.json"
    path.write_bytes(msgspec.json.encode({"schema": "numaplan/machine/1", "nodes": nodes, "caches": caches}))
    return path


@pytest.fixture(scope="module")
def small_caches(lab: Path, machine: Path) -> Iterator[SharedGuest]:  # noqa: ARG001
    """That machine, with its caches modelled."""
    with open_session(Request(["/bin/true"], str(machine), cache=True), silent) as session:
        yield SharedGuest(session)


def lines(guest: SharedGuest, *arguments: object) -> dict[str, Any]:
    result = guest.run(guest_program("lines", "-static"), *arguments, cache=True)
    assert result["exit_code"] == 0
    return result


@pytest.mark.slow
def test_what_fits_into_the_caches_reaches_memory_once(small_caches: SharedGuest) -> None:
    once = lines(small_caches, "stream", 0, 1, L3 // 4, 1)["memory_accesses"]
    often = lines(small_caches, "stream", 0, 1, L3 // 4, 40)["memory_accesses"]
    count = L3 // 4 // LINE
    # The program's own lines may be on that node, too; a few pages were those of what started it.
    assert 0.95 * count < once[0][1] < 1.5 * count
    assert 0.95 * count < often[0][1] < 1.5 * count


@pytest.mark.parametrize("node", [0, 1])
def test_what_does_not_fit_reaches_memory_each_time(small_caches: SharedGuest, node: int) -> None:
    few, many = (lines(small_caches, "stream", 2, node, 8 * L3, passes) for passes in (2, 10))
    more = many["memory_accesses"][2][node] - few["memory_accesses"][2][node]
    assert more == pytest.approx(8 * (8 * L3 // LINE), rel=0.02)
    assert (many["memory_local_share"] > 0.95) == (node == 1)
    assert many["costs"]["memory_ns"] > 4 * few["costs"]["memory_ns"]


@pytest.mark.slow
def test_a_line_that_two_cpus_write_in_turns_moves_each_time(small_caches: SharedGuest) -> None:
    rounds = 20_000  # many beside the lines that start-up takes from other nodes
    near, far = (lines(small_caches, "turns", 0, cpu, rounds) for cpu in (1, 2))
    for result, cpu in ((near, 1), (far, 2)):
        assert rounds <= result["lines_moved"][0][cpu] <= 3 * rounds
        assert rounds <= result["lines_moved"][cpu][0] <= 3 * rounds
    assert near["lines_between_nodes"] < rounds / 10
    assert far["lines_between_nodes"] >= 2 * rounds
    assert far["costs"]["lines_ns"] > 2 * near["costs"]["lines_ns"]


@pytest.mark.slow
def test_vcpus_take_turns_of_some_thousand_accesses_on_fewer_cpus_of_the_host(
    lab: Path,  # noqa: ARG001
    machine: Path,
) -> None:
    """The host's kernel would let each of the two write for milliseconds: a few moves of the line."""
    usable, rounds = os.sched_getaffinity(0), 400_000
    os.sched_setaffinity(0, {min(usable)})
    try:
        with open_session(Request(["/bin/true"], str(machine), cache=True), silent) as session:
            moved = lines(SharedGuest(session), "contend", 0, 1, rounds)["lines_moved"]
    finally:
        os.sched_setaffinity(0, usable)
    assert moved[0][1] > rounds / 4096 and moved[1][0] > rounds / 4096


def test_a_page_that_is_moved_goes_from_the_caches_of_who_wrote_it_to_those_of_who_moves_it(
    small_caches: SharedGuest,
) -> None:
    size = L3 // 4
    counted = lines(small_caches, "moved", 0, 2, size)
    assert counted["migrated"] >= size // 4096
    assert counted["lines_moved"][2][0] == pytest.approx(size // LINE, rel=0.02)
    assert sum(counted["memory_accesses"][2]) < 0.1 * size // LINE


@pytest.mark.parametrize("how", ["filled", "taken"])
def test_what_the_kernel_copies_for_a_program_is_read_and_written_by_the_cpu_that_it_does_so_on(
    small_caches: SharedGuest, how: str
) -> None:
    size = L3 // 4
    counted = lines(small_caches, how, 0, 2, size)
    assert counted["lines_moved"][2][0] == pytest.approx(size // LINE, rel=0.05)
    assert sum(counted["memory_accesses"][2]) < 0.1 * size // LINE


@pytest.mark.slow
def test_a_line_that_the_kernel_copies_to_twice_moves_twice(small_caches: SharedGuest) -> None:
    moved = [lines(small_caches, how, 0, 2, 500 * LINE)["lines_moved"][2][0] for how in ("halves", "told")]
    # The rest is how they tell each other. By lines, not halves, it would be 500.
    assert moved[0] - moved[1] == pytest.approx(2 * 500, rel=0.35)


def test_memory_that_is_given_back_leaves_the_caches(small_caches: SharedGuest) -> None:
    size = L3 // 4
    counted = lines(small_caches, "again", 0, 1, size)
    assert counted["lines_moved"][1][0] < 0.1 * size // LINE
    assert sum(counted["memory_accesses"][1]) == pytest.approx(size // LINE, rel=0.1)


@pytest.mark.slow
def test_threads_that_share_a_cpu_wait_for_each_other(small_caches: SharedGuest) -> None:
    stencil = (guest_program("stencil"), 4, 2048, 200)
    alone = small_caches.run(*stencil, config="compact", cache=True)
    crowded = small_caches.run("taskset", "-c", 0, *stencil, cache=True)
    assert crowded["busiest_cpu"] > 3.5
    assert crowded["costs"]["cpu_ns"] > 5 * alone["costs"]["cpu_ns"]


# Neither begins before the other is there.
BOTH_AT_ONCE = """cd "$(mktemp -d)"; mkfifo a b
for one in a b; do (read x <$one; exec "$0" "$@") & done
exec 3>a 4>b; exec 3>&- 4>&-; wait"""


@pytest.mark.slow
def test_each_waits_as_long_as_the_other_runs_and_not_for_what_runs_before_or_after(
    small_caches: SharedGuest,
) -> None:
    """Of two processes on a cpu: one waits for the other's accesses all the time, until that has ended."""
    alone = (guest_program("stencil"), 1, 2048, 2000)
    together, in_turn = (
        small_caches.run("taskset", "-c", 0, "sh", "-c", words, *alone, cache=True)
        for words in (BOTH_AT_ONCE, '"$0" "$@"; "$0" "$@"; "$0" "$@"')
    )
    own = sum(together["accesses"][0]) / 2 * ACCESS_NS
    assert 2 * own == pytest.approx(together["costs"]["cpu_ns"], rel=0.1)
    assert in_turn["costs"]["cpu_ns"] < 0.02 * own


@pytest.mark.slow
def test_threads_that_poll_lose_nothing_while_they_wait_for_a_cpu(small_caches: SharedGuest) -> None:
    polls = (guest_program("waits"), 0, 200_000, 10)
    both = '"$0" "$@" & "$0" "$@"; wait'
    beside = small_caches.run("taskset", "-c", 0, "sh", "-c", both, *polls, cache=True)
    assert beside["polls"] > 400_000 and beside["costs"]["cpu_ns"] < 0.3 * beside["polls"] * ACCESS_NS


def emulated(machine: Path, folder: Path, *words: object) -> list[dict[str, float]]:
    """What the emulation counts of each thread of `lines` with the same caches."""
    trace = folder / "trace.db"
    words = (guest_program("lines", "-static"), *words)
    how = ("--backend", "emulate", "--period", 1, "--machine", machine)
    succeed("nprof", "record", *how, "-o", trace, "--", *words)
    with Trace.open(trace) as opened:
        rows = opened.counters().itertuples()
        last = {(row.thread, row.event): row.value for row in rows}
    return [
        {event: value for (owner, event), value in last.items() if owner == thread} for thread in range(2)
    ]


@pytest.mark.slow
def test_private_streams_reach_memory_as_often_as_in_the_emulation(
    small_caches: SharedGuest, machine: Path, tmp_path: Path
) -> None:
    needs("qemu-x86_64")
    words = ("own", 0, 1, 8 * L3, 4)
    counted = lines(small_caches, *words)["memory_accesses"]
    for cpu, thread in enumerate(emulated(machine, tmp_path, *words)):
        misses = thread["llc_misses_local"] + thread["llc_misses_remote"]
        assert misses > 4 * 8 * L3 // LINE
        assert sum(counted[cpu]) == pytest.approx(misses, rel=0.02)


@pytest.mark.slow
def test_a_line_in_exchange_moves_as_often_as_in_the_emulation(
    small_caches: SharedGuest, machine: Path, tmp_path: Path
) -> None:
    """The order in which threads run differs, and with it how often one looks before it is its turn."""
    needs("qemu-x86_64")
    words = ("turns", 0, 1, 20_000)
    moved = lines(small_caches, *words)["lines_moved"]
    for cpu, thread in enumerate(emulated(machine, tmp_path, *words)):
        assert moved[cpu][1 - cpu] == pytest.approx(thread["coherence"], rel=0.4)
