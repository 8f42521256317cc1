"""Parts and traces of two jobs: refused by name, and not planned as one."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.mapper.job_instances import halo, make_job
from numaplan.common import UsageError
from numaplan.mapper.commands.main import main
from numaplan.mapper.jobs.host_workload import join
from numaplan.mapper.jobs.part_reading import read_part
from numaplan.mapper.jobs.part_tables import part_folders
from numaplan.mapper.jobs.part_writing import write_part

from .test_parts import traced


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"ranks": 4}, "rank 2 is of a job of 4 ranks, rank 0 of one of 3"),
        ({"job": "8"}, "rank 2 is of job 8, rank 0 of job 7"),
    ],
)
def test_parts_of_two_jobs_are_refused(
    facts: dict[str, Any], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where a run was recorded into the folder of another."""
    make_job(tmp_path, halo((3,)), 2, "2x4")
    parts = [read_part(part) for part in part_folders(tmp_path).values()]
    named = [msgspec.structs.replace(part.facts, job="7") for part in parts]
    named[1] = msgspec.structs.replace(named[1], ranks=0, job="")  # not known
    named[2] = msgspec.structs.replace(named[2], **facts)
    parts = [msgspec.structs.replace(part, facts=one) for part, one in zip(parts, named, strict=True)]
    for part in parts:
        write_part(tmp_path, part)
    with pytest.raises(UsageError, match=says):
        join(parts)
    assert main(("plan", str(tmp_path), "--cluster", "3*2x4:1", "-o", str(tmp_path / "job.json"))) == 2
    said = capsys.readouterr().err
    assert says in said and "empty the folder" in said


def test_traces_of_two_jobs_are_not_reduced_to_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = [
        traced(tmp_path / "t0.db", [0], ranks=2, job="7"),
        traced(tmp_path / "t1.db", [1], ranks=3, job="7"),
        traced(tmp_path / "u1.db", [1], ranks=2, job="8"),
    ]
    for other, says in ((1, "of a job of 3 ranks"), (2, "of job 8")):
        words = (
            str(traces[0]),
            str(traces[other]),
            "-o",
            str(tmp_path / f"job{other}"),
            "--engine",
            "local:1",
        )
        assert main(("reduce", *words)) == 2
        assert says in capsys.readouterr().err
