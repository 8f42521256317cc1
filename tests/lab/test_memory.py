"""Memory where the plan has it, on two nodes: every kind and policy, huge pages, a node that is full."""

import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from numaplan.lab.guest.guest import Guest
from numaplan.lab.guest.job import Job
from numaplan.lab.runs.configs import PlannedLaunch
from numaplan.launcher import LIBRARY
from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanRegion, PlanThread, RegionKey, Run, Scales
from tests.support.guests import guest_program, said_uncounted
from tests.support.launching import plan_for
from tests.support.outside import plan_of_threads
from tests.support.programs import PROGRAMS, kept

pytestmark = pytest.mark.lab
UNTOUCHED = -14  # EFAULT: the stack holds pages that nobody has used
MIB, PAGE, HUGE_PAGE = 1 << 20, 4096, 2 << 20
MACHINE = Machine.load("2x2")
SCANNING = "/sys/kernel/debug/sched/numa_balancing"
Stretches = list[tuple[int, int]]  # (node, pages)


def runs(*parts: tuple[int, int]) -> tuple[Run, ...]:
    """Runs one behind the other, of (bytes, node)."""
    starts = [sum(size for size, _ in parts[:k]) for k in range(len(parts))]
    return tuple(
        Run(offset=start, bytes=size, node=node) for start, (size, node) in zip(starts, parts, strict=True)
    )


# placed.c's blocks, by their size
PLANNED: dict[int, tuple[str, tuple[Run, ...]]] = {
    3 * MIB: ("bind", runs((MIB, 1), (MIB, 0), (MIB, 1))),
    4 * MIB: ("interleave", runs((3 * MIB, 0), (MIB, 1))),
    4 * MIB + 65536: ("interleave", runs((2 * MIB + 32768, 0), (2 * MIB + 32768, 1))),
    8 * MIB: ("bind", runs((3 * MIB + 5000, 1), (5 * MIB - 5000, 0))),
    168 * MIB: ("bind", runs((81 * MIB + 12345, 1), (87 * MIB - 12345, 0))),
    MIB: ("preferred", runs((MIB, 1))),
    2 * MIB: ("bind", runs((2 * MIB, 1))),
    320 * 1024: ("bind", runs((320 * 1024, 0))),
}


@pytest.fixture(scope="module")
def folder() -> Path:
    """Of `placed` and its library."""
    flags = ["cc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-D_GNU_SOURCE"]
    program, library = PROGRAMS / "lab/placed.c", PROGRAMS / "lab/placed_library.c"

    def make(place: Path) -> None:
        for words in (
            ["-shared", "-fPIC", "-o", place / "libplaced.so", library],
            ["-o", place / "placed", program, "-lpthread", "-Wl,-rpath,$ORIGIN"],
        ):
            subprocess.run([*flags, *words], check=True, timeout=60)

    return kept([*flags, program, library], make)


@pytest.fixture(scope="module")
def plan(folder: Path) -> Plan:
    """Threads on node 1, but the last of them and forked processes on node 0; memory as in PLANNED."""
    found = plan_for([str(folder / "placed")], MACHINE)
    memory = {region.region: region for region in found.memory if region.region.bytes in PLANNED}
    assert len(memory) == len(PLANNED)
    *threads, last = found.threads
    return msgspec.structs.replace(
        found,
        app=msgspec.structs.replace(found.app, threads=len(found.threads) + 1),
        threads=(
            *(
                msgspec.structs.replace(thread, node=1, cpus=(2 + number,))
                for number, thread in enumerate(threads)
            ),
            msgspec.structs.replace(last, node=0, cpus=(1,)),
            PlanThread(process="p0.1", path="0", thread=-1, node=0, cpus=(0,), load=1.0, program="placed"),
        ),
        memory=tuple(_placed(region, *PLANNED[region.region.bytes]) for region in memory.values()),
    )


def _placed(region: PlanRegion, policy: str, parts: tuple[Run, ...]) -> PlanRegion:
    return msgspec.structs.replace(region, policy=policy, runs=parts)


def launched(
    uncounted: Guest, plan: Plan, folder: Path, tmp_path: Path, *words: str
) -> tuple[dict[str, Stretches], dict[str, Any]]:
    """placed's lines by name, and the report."""
    work = tmp_path / "work"
    work.mkdir()
    program = str(folder / "placed")
    launch = PlannedLaunch(plan, program, MACHINE, os.environ, work)
    job = launch.started(Job(program, [program, *words], os.environ, str(work)))
    text = said_uncounted(uncounted, [program, *words], {**job.environment})
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines()}
    found = {
        name: [(int(node), int(pages)) for node, pages in (word.split("*") for word in parts)]
        for name, parts in lines.items()
        if all("*" in word for word in parts)
    }
    numbers = {name: [(0, int(parts[0]))] for name, parts in lines.items() if parts and "*" not in parts[0]}
    return {**found, **numbers}, launch.report(0)


@pytest.mark.slow
def test_every_kind_of_memory_is_where_the_plan_has_it(
    uncounted: Guest, plan: Plan, folder: Path, tmp_path: Path
) -> None:
    found, report = launched(uncounted, plan, folder, tmp_path)
    assert report["ok"] and report["reasons"] == (), report["reasons"]
    assert all(region["misplaced"] == 0 and region["appeared"] for region in report["memory"])
    assert found["sized"] == [(1, 256), (0, 256), (1, 256)]
    for name in ("main_stack", "main_storage", "thread_stack", "static", "library"):
        assert {node for node, _ in found[name]} - {UNTOUCHED} == {1}, (name, found[name])
    for what in ("forked_stack_", "forked_storage_"):
        forked = [parts for name, parts in found.items() if name.startswith(what)]
        assert len(forked) == 16
        assert {node for parts in forked for node, _ in parts} == {0}, forked
    assert "lost" not in found
    # A page belongs to the run of its first planned byte; the block begins 16 bytes into its first page.
    split = found["split"]
    assert [node for node, _ in split][:2] == [1, 0] and split[0][1] == 3 * MIB // PAGE + 2
    assert (
        sum(pages for node, pages in split if node == 1) <= split[0][1] + 1
    )  # the last page is the next block's


def test_a_block_takes_nothing_of_its_neighbours_huge_page_along(
    uncounted: Guest, plan: Plan, folder: Path, tmp_path: Path
) -> None:
    found, _ = launched(uncounted, plan, folder, tmp_path)
    pages = [node for node, count in found["sharing"] for _ in range(count)]
    assert set(pages[1:-1]) == {0}  # the first and the last are those of their neighbours
    pages = [node for node, count in found["neighbour"] for _ in range(count)]
    assert set(pages[:-1]) <= {1, UNTOUCHED} and pages.count(1) > 1


def test_of_a_stack_on_huge_pages_only_what_is_near_comes_to_its_thread(
    uncounted: Guest, plan: Plan, folder: Path, tmp_path: Path
) -> None:
    """Its creator has made 2 MiB for the descriptor: to move all of it costs more than it gains."""
    found, _ = launched(uncounted, plan, folder, tmp_path)
    (there, left), (here, moved) = found["huge_stack"]
    assert (there, here) == (1, 0)
    assert left + moved == HUGE_PAGE // PAGE and 2 <= moved <= 80


@pytest.mark.slow
def test_interleaving_is_in_the_runs_proportion(
    uncounted: Guest, plan: Plan, folder: Path, tmp_path: Path
) -> None:
    found, _ = launched(uncounted, plan, folder, tmp_path)
    for name, share, longest in (("weighted", 0.25, 16), ("equal", 0.5, 1)):
        pages = [node for node, count in found[name] for _ in range(count)]
        assert abs(sum(pages) / len(pages) - share) < 0.01, name
        for start in range(0, len(pages) - 64, 64):  # everywhere, not only on the whole
            assert abs(sum(pages[start : start + 64]) / 64 - share) < 0.07
        stretches = [count for _, count in found[name]]
        assert sorted(stretches)[-2] <= longest


@pytest.mark.slow
def test_borders_do_not_cut_huge_pages(uncounted: Guest, plan: Plan, folder: Path, tmp_path: Path) -> None:
    found, _ = launched(uncounted, plan, folder, tmp_path)
    start = found["start"][0][1]
    (first, pages), (second, rest) = found["huge"]
    assert (first, second) == (1, 0) and pages + rest == 168 * MIB // PAGE
    assert (start + pages * PAGE) % HUGE_PAGE == 0
    assert abs(pages * PAGE - 81 * MIB) <= HUGE_PAGE
    whole = (start + 168 * MIB) // HUGE_PAGE - -(-start // HUGE_PAGE)
    assert found["huge_kilobytes"][0][1] == whole * HUGE_PAGE >> 10


@pytest.mark.parametrize("pages", [1280, 513])
def test_a_region_larger_or_smaller_than_planned(
    uncounted: Guest, plan: Plan, folder: Path, tmp_path: Path, pages: int
) -> None:
    found, report = launched(uncounted, plan, folder, tmp_path, str(pages * PAGE), "only")
    # What lies behind the plan is left to first touch: by a thread on node 1.
    assert found["sized"] == [(1, 256), (0, 256), (1, pages - 512)]
    (sized,) = [region for region in report["memory"] if region["region"]["bytes"] == 3 * MIB]
    assert sized["appeared"] and sized["misplaced"] == 0
    assert any(f"{pages * PAGE} bytes today, {3 * MIB} in the plan" in reason for reason in report["reasons"])
    absent = [region["region"]["bytes"] for region in report["memory"] if not region["appeared"]]
    assert 8 * MIB in absent and not report["ok"]


@pytest.mark.parametrize("pages", [1536, 384])
def test_a_region_that_scales_is_cut_in_proportion(
    uncounted: Guest, plan: Plan, folder: Path, tmp_path: Path, pages: int
) -> None:
    memory = tuple(
        msgspec.structs.replace(region, scales=Scales(known="shares"))
        if region.region.bytes == 3 * MIB
        else region
        for region in plan.memory
    )
    scaled = msgspec.structs.replace(plan, memory=memory)
    found, report = launched(uncounted, scaled, folder, tmp_path, str(pages * PAGE), "only")
    assert found["sized"] == [(1, pages // 3), (0, pages // 3), (1, pages // 3)]
    (sized,) = [region for region in report["memory"] if region["region"]["bytes"] == 3 * MIB]
    third = pages * PAGE // 3
    assert sized["misplaced"] == 0 and sized["planned"] == {"1": 2 * third, "0": third}
    assert not any("in the plan" in reason for reason in report["reasons"])


@pytest.mark.slow
def test_a_full_node_is_said_and_survived(uncounted: Guest, plan: Plan, folder: Path, tmp_path: Path) -> None:
    size = 400 * MIB  # a node has 320
    (sized,) = [region for region in plan.memory if region.region.bytes == 3 * MIB]
    key = msgspec.structs.replace(sized.region, bytes=size)
    large = msgspec.structs.replace(sized, region=key, runs=runs((size, 1)))
    plan = msgspec.structs.replace(plan, memory=(large,))
    found, report = launched(uncounted, plan, folder, tmp_path, str(size), "only")
    share = sum(pages for node, pages in found["sized"] if node == 1) * PAGE / size
    assert 0.4 < share < 0.8
    assert "on node 0 instead of 1: node 1 was full" in report["summary"]
    assert any(reason.endswith("on other nodes: node 1 was full") for reason in report["reasons"])
    assert not report["ok"]


def test_a_static_program_is_bound_and_its_memory_spread_as_a_whole(uncounted: Guest, tmp_path: Path) -> None:
    program = guest_program("launcher/policy", "-static")
    key = RegionKey(kind="mmap", name="policy+0x10", bytes=2 * MIB)
    spread = PlanRegion(region=key, policy="interleave", runs=runs((MIB, 0), (MIB, 1)))
    plan = msgspec.structs.replace(plan_of_threads([("p0", "0")], machine=MACHINE), memory=(spread,))
    work = tmp_path / "work"
    work.mkdir()
    launch = PlannedLaunch(plan, str(program), MACHINE, os.environ, work)
    job = launch.started(Job(str(program), [str(program)], os.environ, str(tmp_path), timeout=600))
    with (tmp_path / "said").open("wb+") as output:
        outcome = uncounted.run(job, -1, output.fileno(), output.fileno())
    assert (outcome.exit_code, (tmp_path / "said").read_text()) == (0, "3 3\n")
    report = launch.report(0)
    assert [thread["applied"] for thread in report["threads"]] == [plan.threads[0].cpus]
    assert any("memory was spread over nodes 0-1 as a whole" in reason for reason in report["reasons"])


def test_the_kernel_moves_marked_pages_to_who_touches_them(uncounted: Guest) -> None:
    """Memory bound to node 0, which the kernel leaves where it is, until it is marked.

    It looks every 1 to 60 seconds of a task's time; sooner here, as emulated seconds are long.
    """
    for name, milliseconds in (
        ("scan_delay_ms", 10),
        ("scan_period_min_ms", 100),
        ("scan_period_max_ms", 1000),
    ):
        said_uncounted(uncounted, ["/bin/sh", "-c", f"echo {milliseconds} > {SCANNING}/{name}"])
    follow = str(guest_program("follow", "-O1"))
    text = said_uncounted(uncounted, [follow, "kernel", "1024", "0"], {"LD_PRELOAD": str(LIBRARY)})
    assert text.startswith("1024 of 1024 pages"), text
