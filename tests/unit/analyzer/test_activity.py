"""Which threads run at the same time."""

import numpy as np

from numaplan.analyzer.timeline.activity import together


def test_threads_run_together_as_far_as_their_accesses_fall_into_the_same_time() -> None:
    line = np.zeros((100, 3))
    line[:50, 0] = line[50:, 1] = line[:, 2] = 10.0
    found = together(line)
    assert found[0, 1] == found[1, 0] == 0
    assert found[0, 2] == found[1, 2] == 1
    assert found[2, 0] == found[2, 1] == 0.5
