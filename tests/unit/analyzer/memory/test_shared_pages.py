"""Memory that processes share is known by its physical address."""

from pathlib import Path

import numpy as np

from numaplan.analyzer import TraceSamples
from numaplan.profiler import Trace
from tests.support.traces import write_trace

PAGE = 4096
THREADS = [
    (number, process, "0", 10 + number, 10 + number, "app", 0, -1)
    for number, process in enumerate(("p0", "p0.1"))
]


def keys(folder: Path, time_ns: list[int], thread: list[int], addr: list[int], phys: list[int]) -> list[int]:
    samples = {"time_ns": time_ns, "thread": thread, "addr": addr, "phys_addr": phys}
    with Trace.open(write_trace(folder / "t.db", samples, THREADS)) as trace:
        found: list[int] = np.concatenate([piece.key for piece in TraceSamples(trace).pieces()]).tolist()
    return found


def test_a_line_that_two_processes_use_at_other_addresses_is_one(tmp_path: Path) -> None:
    found = keys(
        tmp_path,
        [0, 1, 2, 3],
        [0, 1, 0, 1],
        [5 * PAGE + 8, 7 * PAGE + 8, 5 * PAGE + 64, 7 * PAGE + 64],
        [2 * PAGE + 8, 2 * PAGE + 8, 2 * PAGE + 64, 2 * PAGE + 64],
    )
    assert found[0] == found[1] != found[2] == found[3]


def test_private_memory_at_one_address_stays_apart(tmp_path: Path) -> None:
    found = keys(tmp_path, [0, 1, 2, 3], [0, 1, 0, 1], [PAGE] * 4, [2 * PAGE, 3 * PAGE, 2 * PAGE, 3 * PAGE])
    assert found[0] == found[2] != found[1] == found[3]


def test_a_page_that_another_gets_later_is_not_shared(tmp_path: Path) -> None:
    found = keys(tmp_path, [0, 1, 2, 3], [0, 0, 1, 1], [PAGE, PAGE, 9 * PAGE, 9 * PAGE], [2 * PAGE] * 4)
    assert found[0] == found[1] != found[2] == found[3]


def test_without_physical_addresses_nothing_is_joined(tmp_path: Path) -> None:
    found = keys(tmp_path, [0, 1, 2], [0, 1, 0], [PAGE] * 3, [0] * 3)
    assert found[0] == found[2] != found[1]
