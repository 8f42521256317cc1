"""Which threads run at the same time."""

import numpy as np

from numaplan.analyzer.timeline.activity import living_together, together


def test_threads_run_together_as_far_as_their_accesses_fall_into_the_same_time() -> None:
    line = np.zeros((100, 3))
    line[:50, 0] = line[50:, 1] = line[:, 2] = 10.0
    found = together(line)
    assert found[0, 1] == found[1, 0] == 0
    assert found[0, 2] == found[1, 2] == 1
    assert found[2, 0] == found[2, 1] == 0.5


def test_threads_live_together_unless_one_begins_when_the_other_has_ended() -> None:
    found = living_together([(0, -1), (0, 495), (495, -1), (494, 500)])
    assert found.tolist() == [
        [True, True, True, True],
        [True, True, False, True],
        [True, False, True, True],
        [True, True, True, True],
    ]
    assert living_together([]).shape == (0, 0)
