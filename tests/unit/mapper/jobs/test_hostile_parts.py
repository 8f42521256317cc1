"""Parts of ranks whose files are damaged, in every way that a file can be wrong."""

from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks.mapper.job_instances import halo, make_job
from numaplan.common import UsageError
from numaplan.mapper.commands.main import main
from numaplan.mapper.jobs.part_reading import read_part


def rewritten(folder: Path, name: str, change: Callable[[Any], Any], **meta: str) -> None:
    path = folder / f"{name}.parquet"
    table = pq.read_table(path, partitioning=None)
    kept = {
        **table.schema.metadata,
        **{key.replace("_", ".").encode(): value.encode() for key, value in meta.items()},
    }
    pq.write_table(change(table).replace_schema_metadata(kept), path)


def set_column(name: str, value: Any) -> Callable[[Any], Any]:
    def change(table: Any) -> Any:
        import pyarrow as pa

        at = table.schema.get_field_index(name)
        return table.set_column(at, name, pa.array([value] * len(table), table.schema.field(at).type))

    return change


HOSTILE: list[tuple[str, Callable[[Path], object]]] = [
    ("no such", lambda part: (part / "pairs.parquet").unlink()),
    ("threads.parquet", lambda part: (part / "threads.parquet").write_bytes(b"")),
    (
        "pages.parquet",
        lambda part: (part / "pages.parquet").write_bytes((part / "pages.parquet").read_bytes()[:-9]),
    ),
    ("no part of a job", lambda part: rewritten(part, "pairs", lambda t: t, numaplan="")),
    ("numaplan/part/9", lambda part: rewritten(part, "pairs", lambda t: t, numaplan="numaplan/part/9")),
    ("columns", lambda part: rewritten(part, "pages", lambda t: t.drop_columns(["page"]))),
    ("facts", lambda part: rewritten(part, "threads", lambda t: t, numaplan_facts="{}")),
    ("machine", lambda part: rewritten(part, "threads", lambda t: t, numaplan_machine="{}")),
    ("thread", lambda part: rewritten(part, "pairs", set_column("thread", 7))),
    ("thread", lambda part: rewritten(part, "pairs", set_column("other", -1))),
    ("values", lambda part: rewritten(part, "pairs", set_column("value", float("nan")))),
    ("region", lambda part: rewritten(part, "pages", set_column("region", 5))),
    ("thread", lambda part: rewritten(part, "pages", set_column("thread", 5))),
    ("page", lambda part: rewritten(part, "pages", set_column("page", -1))),
    ("accesses", lambda part: rewritten(part, "pages", set_column("accesses", -1.0))),
    ("load", lambda part: rewritten(part, "threads", set_column("load", None))),
    ("name", lambda part: rewritten(part, "threads", set_column("name", None))),
    ("start_ns|number", lambda part: rewritten(part, "threads", set_column("start_ns", None))),
    ("rank", lambda part: rewritten(part, "messages", set_column("peer", -1))),
    ("bytes", lambda part: rewritten(part, "messages", set_column("bytes", -1))),
    ("rates", lambda part: rewritten(part, "phases", set_column("rate", float("inf")))),
    ("holds the part of rank 0", lambda part: copytree(part.with_name("rank=0"), part, dirs_exist_ok=True)),
    ("bytes|sequence|kind|Expected", lambda part: rewritten(part, "regions", set_column("bytes", -1))),
]


@pytest.mark.parametrize(("says", "spoil"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_parts_get_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], says: str, spoil: Callable[[Path], object]
) -> None:
    make_job(tmp_path / "job", halo((2,)), 2, "2x4")
    spoil(tmp_path / "job/rank=1")
    words = (
        "plan",
        str(tmp_path / "job"),
        "--cluster",
        "2*2x4:1",
        "--engine",
        "local:1",
        "-o",
        str(tmp_path / "j"),
    )
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "rank=1" in error, error
    with pytest.raises(UsageError, match=f"(?i){says}"):
        read_part(tmp_path / "job/rank=1")
