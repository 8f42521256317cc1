"""Times of slices as people read them."""

import numpy as np
import pytest

from numaplan.analyzer.timeline import Timeline


@pytest.mark.parametrize(
    "start,width,said",
    [(0, 1_000_000, "3"), (2_000_000, 5_000_000, "17"), (0, 9_927, "0.030"), (7, 1, "0.000010")],
)
def test_neighbouring_slices_are_told_apart(start: int, width: int, said: str) -> None:
    timeline = Timeline(start, width, np.zeros((9, 2)))
    assert timeline.in_ms(3) == said
    assert len({timeline.in_ms(place) for place in range(9)}) == 9
