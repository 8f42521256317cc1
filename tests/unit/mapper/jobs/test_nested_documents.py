"""JSON that is nested without end, where no field asks for it, is told like any that is wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.machine import Cluster, Machine
from numaplan.mapper import Plan
from numaplan.mapper.advice.counted import read_counts
from numaplan.mapper.jobs.document import JobPlan

READERS: dict[str, Callable[[Path], object]] = {
    "a machine": lambda path: Machine.load(str(path)),
    "a cluster": lambda path: Cluster.from_json(path.read_bytes(), str(path)),
    "a plan": Plan.load,
    "a job's plan": JobPlan.load,
    "the lab's counts": read_counts,
}


@pytest.mark.parametrize("what", READERS)
def test_it_is_told(tmp_path: Path, what: str) -> None:
    path = tmp_path / "deep.json"
    path.write_text('{"note": ' + '{"a": ' * 100_000)
    with pytest.raises(UsageError, match=r"deep\.json"):
        READERS[what](path)
