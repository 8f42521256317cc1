"""`--save`: which memory the refined plan names, and where it was."""

from dataclasses import replace

import numpy as np

from numaplan.launcher.online.bindings import Bindings
from numaplan.launcher.online.example import example_observation
from numaplan.launcher.online.saving import refined_plan
from numaplan.launcher.online.system import LocalSystem
from numaplan.machine import Machine
from numaplan.mapper import Plan
from numaplan.mapper.online.observation import MachineView
from numaplan.profiler.identity.records import Identity, RegionRecord, ThreadRecord

MACHINE = Machine.load("2x2")
PAGE, SECOND = 4096, 1_000_000_000
NOW_S = 100.0
OLD, NEW = 10 * SECOND, 50 * SECOND


def block(
    thread: str, page: int, pages: int, start_ns: int, end_ns: int = -1, number: int = 1
) -> RegionRecord:
    """A block of the program's that this thread made, at the pages from `page` on."""
    return RegionRecord(
        "p0", 1, "heap", f"app+0x{page:x}", "", page * PAGE, pages * PAGE, thread, number, start_ns, end_ns
    )


def saved(*regions: RegionRecord, touched_s: float = NOW_S) -> Plan:
    """The plan where, at 100 s, an interval of a second has shown pages 0, 4, … 28, all on node 0."""
    seen = example_observation(MachineView.of(MACHINE))
    touches = replace(seen.touches, last_s=np.full(seen.touches.count, touched_s))
    seen = replace(seen, time_s=NOW_S, interval_s=1.0, touches=touches)
    threads = tuple(ThreadRecord("p0", str(n), 1, n + 1, "", 0, -1) for n in range(4))
    bindings = Bindings(frozenset(), LocalSystem())
    return refined_plan("excl", ("app",), MACHINE, seen, Identity((), threads, regions, (), 0), bindings)


def makers(plan: Plan) -> list[str]:
    return [region.region.thread for region in plan.memory]


def test_memory_that_was_freed_has_not_the_pages_of_who_lives_there_now() -> None:
    assert makers(saved(block("0.1", 0, 40, OLD, 20 * SECOND), block("0.2", 0, 40, NEW))) == ["0.2"]
    assert makers(saved(block("0.1", 0, 40, OLD), block("0.2", 20, 20, NEW))) == ["0.1", "0.2"]
    assert makers(saved(block("0.1", 0, 40, OLD), block("0.2", 0, 40, NEW))) == ["0.2"]


def test_what_began_after_the_last_look_or_after_its_pages_were_touched_was_not_seen() -> None:
    assert makers(saved(block("0.1", 0, 40, 101 * SECOND))) == []
    assert makers(saved(block("0.1", 0, 40, NEW), touched_s=49.0)) == []


def test_memory_that_is_freed_before_the_program_ends_was_there() -> None:
    assert makers(saved(block("0.1", 0, 40, OLD, 101 * SECOND))) == ["0.1"]


def test_temporaries_are_left_to_first_touch() -> None:
    now = int(NOW_S * SECOND)
    short = [block("0.1", 0, 16, now + at, now + at + 1000, at) for at in range(-200_000, 200_000, 100)]
    assert makers(saved(*short)) == []
    assert makers(saved(*short, block("0", 16, 16, OLD))) == ["0"]


def test_the_most_accessed_comes_first_then_the_oldest() -> None:
    few = [block("0.1", page, 1, NEW) for page in (0, 4, 8, 12)]
    assert makers(saved(*few, block("0", 16, 16, NEW))) == ["0"] + 4 * ["0.1"]
    assert makers(saved(block("0.1", 0, 4, NEW), block("0.2", 4, 4, OLD))) == ["0.2", "0.1"]
