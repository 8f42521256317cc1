"""Of the faults on a page the first is a first touch, and the others are hint faults."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.profiler import EVENT_CODE
from numaplan.profiler.backends.perf import faults
from numaplan.profiler.sample_block import SampleBlock
from tests.support.properties import examples
from tests.support.traces import PLAIN

FAULT, HINT, LOAD = (EVENT_CODE[name] for name in ("fault", "hint_fault", "load"))
Row = tuple[int, int, int, int]  # process, page, time, event


def block(rows: Sequence[Row]) -> SampleBlock:
    pid, page, time, event = np.array(rows).reshape(-1, 4).T
    given = {"pid": pid, "tid": pid, "addr": (page << 12) + time % 4096, "time_ns": time, "event": event}
    plain = {name: np.full(len(rows), value, kind) for name, (kind, value) in PLAIN.items()}
    columns = {name: given.get(name, plain.get(name)) for name in SampleBlock.__dataclass_fields__}
    kinds = {name: kind for name, (kind, _value) in PLAIN.items()}
    return SampleBlock(**{name: column.astype(kinds.get(name, np.int32)) for name, column in columns.items()})


def test_hint_faults_are_the_repeated_ones() -> None:
    blocks = [
        block([(1, 7, 50, FAULT), (1, 7, 10, FAULT), (1, 8, 20, FAULT)]),
        block([(2, 7, 5, FAULT), (1, 7, 30, FAULT), (1, 7, 60, LOAD)]),
    ]
    found = [one.event.tolist() for one in faults.HintFaults(blocks)]
    assert found == [[HINT, FAULT, FAULT], [FAULT, HINT, LOAD]]


@pytest.mark.parametrize("at_once", [1, 4, 1 << 18])
@examples(40)
@given(
    rows=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5), st.integers(1, 1 << 40)), min_size=1),
    size=st.integers(1, 7),
)
def test_however_they_come(at_once: int, rows: list[tuple[int, int, int]], size: int) -> None:
    rows = list({time: (pid, page, time) for pid, page, time in rows}.values())
    blocks = [block([(*row, FAULT) for row in rows[at : at + size]]) for at in range(0, len(rows), size)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(faults, "_SORTED_AT_ONCE", at_once)
        found = np.concatenate([one.event for one in faults.HintFaults(blocks)])
    first: dict[tuple[int, int], int] = {}
    for pid, page, time in rows:
        first[pid, page] = min(time, first.get((pid, page), time))
    assert found.tolist() == [FAULT if first[pid, page] == time else HINT for pid, page, time in rows]
