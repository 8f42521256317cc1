"""Threads of which a larger machine may have more: programs make as many as they see cpus."""

import numpy as np
import pytest

from numaplan.machine import Machine
from numaplan.mapper.planning.thread_notes import thread_notes
from numaplan.mapper.workload.workload import Workload


def recorded(threads: int, at_once: int, there: str = "2x2", processes: int = 1) -> Workload:
    """Threads that follow one another, `at_once` of them at a time, recorded on a machine."""
    return Workload(
        threads=[(f"p{n % processes}", f"0.{n}" if n else "0") for n in range(threads)],
        comm=np.zeros((threads, threads)),
        loads=np.ones(threads),
        sources={},
        machine=Machine.load(there),
        lives=tuple((n // at_once * 10, n // at_once * 10 + 5) for n in range(threads)),
    )


@pytest.mark.parametrize("workload", [recorded(4, 4), recorded(5, 5), recorded(8, 4)])
def test_as_many_as_cpus_may_be_more_elsewhere(workload: Workload) -> None:
    (note,) = thread_notes(workload, Machine.load("4x4"))
    assert "saw 4 cpus" in note and "others on 16" in note and "the same --machine" in note


@pytest.mark.parametrize(
    ("workload", "machine"),
    [
        (recorded(4, 4), "2x2"),
        (recorded(4, 4), "2x1"),
        (recorded(3, 3), "4x4"),
        (recorded(6, 6), "4x4"),
        (recorded(4, 4, processes=2), "4x4"),
        (recorded(2, 1, there="1x1"), "4x4"),
    ],
)
def test_nothing_is_said_where_it_sees_as_many_or_chose_others(workload: Workload, machine: str) -> None:
    assert thread_notes(workload, Machine.load(machine)) == []
