"""Numbers as people read them."""

import pytest

from numaplan.analyzer import in_time


@pytest.mark.parametrize(
    ("ns", "digits", "said"),
    [
        (0, 4, "0 ns"),
        (250, 4, "250 ns"),
        (1500, 4, "1.5 µs"),
        (63_639_400, 3, "63.6 ms"),
        (999_600_000, 3, "1 s"),  # not 1e+03 ms
        (999_600_000, 4, "999.6 ms"),
        (2_123_000_000, 3, "2.12 s"),
        (-4_512_000_000, 3, "-4.51 s"),
    ],
)
def test_times_have_the_largest_unit_that_they_reach(ns: float, digits: int, said: str) -> None:
    assert in_time(ns, digits) == said
