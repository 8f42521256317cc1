"""The worked example of [CMLB], 3.2.2 (figure 3): eight threads with loads 1 to 8, two groups of four.

Of the figure's matrix the text says what matters: 0 takes 1 first, and 2 is the next of the rank.
"""

import numpy as np

from numaplan.mapper import evaluate, map_threads
from numaplan.mapper.threads.methods.cmlb import _Fitting

LOADS = np.arange(1.0, 9.0)
COMM = np.zeros((8, 8))
COMM[0, 1:] = COMM[1:, 0] = np.arange(14.0, 0.0, -2.0)  # of 1 most, then 2, and so on
AML, GROUP = 18.0, 1.0 + 2.0  # half of all loads; threads 0 and 1 are in group 1


def test_thread_2_is_refused_and_threads_6_and_7_fit() -> None:
    """lastLoad 12 with thread 2, beyond maxLoad 8 (thread 7); minLoad is 4 (thread 3)."""
    fits = _Fitting(LOADS[2:], AML - GROUP, 1, AML)
    assert not fits(LOADS[2])
    assert fits.all(LOADS[2:]).tolist() == [False, False, False, False, True, True]
    edges = {room: _Fitting(LOADS[2:], room + LOADS[2], 1, AML)(LOADS[2]) for room in (3.9, 4.0, 8.0, 8.1)}
    assert edges == {3.9: False, 4.0: True, 8.0: True, 8.1: False}


def test_threads_0_1_6_7_come_together() -> None:
    """Group 1: 0, 1, 6, 7; group 2: 2, 3, 4, 5; their loads are the same."""
    nodes = map_threads(COMM, LOADS, "2x4", "cmlb")
    assert [np.flatnonzero(nodes == node).tolist() for node in (nodes[0], nodes[2])] == [
        [0, 1, 6, 7], [2, 3, 4, 5]
    ]  # fmt: skip
    assert evaluate(COMM, LOADS, "2x4", nodes).load_std == 0.0
    eager = map_threads(COMM, LOADS, "2x4", "eagermap")
    assert evaluate(COMM, LOADS, "2x4", eager).load_std > 0.0
