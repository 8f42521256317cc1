"""What a machine's description may say."""

import msgspec
import pytest

from numaplan.common import UsageError
from numaplan.machine import Machine


@pytest.mark.parametrize("name", ["distances", "latency_ns", "bandwidth_mb_s"])
@pytest.mark.parametrize("entry", [-1.0, 1e308, 1e-308, float("inf"), float("nan")])
def test_impossible_entries_of_a_matrix_are_refused(name: str, entry: float) -> None:
    rows = ((10.0, entry), (21.0, 10.0))
    with pytest.raises(UsageError, match=f"'{name}' has an entry that cannot be"):
        msgspec.structs.replace(Machine.load("2x2"), **{name: rows})


@pytest.mark.parametrize("entry", [0.0, 1.0, 254.0, 2.0**32 - 1])
def test_others_are_taken(entry: float) -> None:
    rows = ((10.0, entry), (21.0, 10.0))
    assert msgspec.structs.replace(Machine.load("2x2"), distances=rows).distance_rows == rows
