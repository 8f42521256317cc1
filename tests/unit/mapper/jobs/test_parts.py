"""Parts of ranks: out of traces, through Parquet, side by side again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.mapper.job_instances import halo, make_job
from numaplan.common import UsageError
from numaplan.mapper import JobPlan, PlanOptions, Workload, make_plan
from numaplan.mapper.commands.main import main
from numaplan.mapper.jobs.host_workload import join
from numaplan.mapper.jobs.part import Messages
from numaplan.mapper.jobs.part_reading import read_part
from numaplan.mapper.jobs.part_tables import SCHEMA, part_folders
from numaplan.mapper.jobs.part_writing import write_part
from numaplan.mapper.jobs.rank_graph import rank_graph, summarise
from numaplan.mapper.jobs.reducing import parts_of_trace, reduce_trace
from numaplan.mapper.workload.from_trace import workload_of_trace
from numaplan.mapper.workload.part_counters import KEPT, WITHIN
from tests.support.traces import write_trace

PAGES, START = 16, 1 << 30


def traced(
    path: Path,
    numbers: list[int],
    threads: int = 4,
    seed: int = 0,
    names_of: Sequence[tuple[Any, ...]] = (),
    **meta: object,
) -> Path:
    """A trace of these ranks: each thread uses its part of its rank's block and a page of the next thread's;
    the first two ranks share a mapping."""
    rng = np.random.default_rng(seed)
    count, names = 4000, [(rank, thread) for rank in numbers for thread in range(threads)]
    who = rng.integers(0, len(names), count)
    page = np.array([names[one][1] * PAGES // threads for one in who]) + rng.integers(
        0, PAGES // threads + 1, count
    )
    region = np.array([numbers.index(names[one][0]) for one in who])
    mapped = (rng.random(count) < 0.1) & (region < 2)
    region = np.where(mapped, len(numbers), region)
    samples = {
        "time_ns": np.sort(rng.integers(0, 10**8, count)),
        "thread": who,
        "addr": START * (region + 1) + page % PAGES * 4096 + rng.integers(0, 64, count) * 64,
        "is_write": rng.random(count) < 0.4,
        "region": region,
    }
    rows = [
        (one, f"r{rank}", f"0.{thread}" if thread else "0", 100 + one, 100 + rank, "app", 0, -1)
        for one, (rank, thread) in enumerate(names)
    ]
    regions = [
        (
            place,
            f"r{rank}",
            "heap",
            "app+0x1",
            "",
            START * (place + 1),
            PAGES * 4096,
            place * threads,
            1,
            0,
            -1,
        )
        for place, rank in enumerate(numbers)
    ]
    regions.append(
        (
            len(numbers),
            f"r{numbers[0]}",
            "mmap",
            "shm",
            "",
            START * (len(numbers) + 1),
            PAGES * 4096,
            0,
            1,
            0,
            -1,
        )
    )
    facts = {"period": 1000, "ranks": len(numbers), "host": "n01", **meta}
    counters = [(9, one, name, 50.0 + one) for one in range(len(names)) for name in (WITHIN, KEPT)]
    return write_trace(path, samples, rows, regions, facts, machine="2x4", names=names_of, counters=counters)


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """The fields in which two workloads differ."""
    if isinstance(one, msgspec.Struct) and other is not None:
        return [
            line
            for name in one.__struct_fields__
            for line in differences(getattr(one, name), getattr(other, name), f"{where}.{name}")
        ]
    if isinstance(one, np.ndarray):
        alike = isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
        return [] if alike else [where]
    if isinstance(one, (list, tuple)):
        return [] if list(one) == list(other) else [where]
    return [] if one == other else [where]


@pytest.mark.slow
def test_what_the_source_calls_a_region_stays_with_it(tmp_path: Path) -> None:
    """From the trace's names through the part into the plan of the job."""
    named = [(0, -1, "grid", "double[]", "src/app.c", 42, "make", 8, -1)]
    trace = traced(tmp_path / "t.db", [0, 1], names_of=named)
    reduce_trace(trace, tmp_path / "job")
    (part, other) = (read_part(folder) for folder in part_folders(tmp_path / "job").values())
    assert part.pages is not None and other.pages is not None
    assert list(part.pages.sources.values()) == ["grid (double[]) app.c:42 in make"]
    assert "grid" not in str(other.pages.sources)
    words = ("plan", str(tmp_path / "job"), "--cluster", "2*2x4:1", "-o", str(tmp_path / "job.json"))
    assert main(words) == 0
    job = JobPlan.load(tmp_path / "job.json")
    assert {one.source for plan in job.hosts.values() for one in plan.memory} >= {
        "grid (double[]) app.c:42 in make"
    }


def through_files(trace: Path, folder: Path) -> Workload:
    reduce_trace(trace, folder)
    return join([read_part(part) for part in part_folders(folder).values()])


def test_one_rank_comes_back_as_it_was(tmp_path: Path) -> None:
    trace = traced(tmp_path / "t.db", [0])
    found, expected = through_files(trace, tmp_path / "job"), workload_of_trace(trace)
    assert expected.use is not None and expected.use.kept is not None and expected.use.kept.any()
    assert differences(expected, found) == [".sources", ".use.activity"]
    machine = expected.machine
    assert machine is not None
    plans = [make_plan(one, machine, PlanOptions()).plan for one in (expected, found)]
    without = [msgspec.structs.replace(plan, provenance={}) for plan in plans]
    assert without[0].to_json() == without[1].to_json()


def test_ranks_recorded_together_come_back_together(tmp_path: Path) -> None:
    trace = traced(tmp_path / "t.db", [0, 1, 2])
    found, expected = through_files(trace, tmp_path / "job"), workload_of_trace(trace)
    assert differences(
        msgspec.structs.replace(expected, pages=None), msgspec.structs.replace(found, pages=None)
    ) == [".sources", ".use.activity"]
    assert expected.pages is not None and found.pages is not None
    assert expected.pages.elsewhere is not None and found.pages.elsewhere is not None
    assert np.array_equal(expected.pages.elsewhere, found.pages.elsewhere)
    for one, other in ((expected.pages, found.pages),):
        rows = [
            sorted(
                zip(
                    [pages.regions[at] for at in pages.region],
                    pages.page,
                    pages.thread,
                    pages.accesses,
                    strict=True,
                ),
                key=str,
            )
            for pages in (one, other)
        ]
        assert rows[0] == rows[1]


def test_a_part_of_the_ranks_leaves_what_they_shared_with_others(tmp_path: Path) -> None:
    trace = traced(tmp_path / "t.db", [0, 1, 2])
    parts = parts_of_trace(trace)
    whole, some = join(parts), join([parts[0], parts[2]])
    kept = [at for at, (process, _) in enumerate(whole.threads) if process != "r1"]
    assert isinstance(whole.comm, np.ndarray) and isinstance(some.comm, np.ndarray)
    assert np.array_equal(whole.comm[np.ix_(kept, kept)], some.comm)
    assert np.array_equal(whole.loads[kept], some.loads)
    assert some.pages is not None and some.pages.toucher is not None
    assert some.pages.thread.max() < len(kept) and some.pages.toucher.min() >= -1


def test_ranks_recorded_apart_stand_side_by_side(tmp_path: Path) -> None:
    for rank in (0, 1):
        reduce_trace(traced(tmp_path / f"t{rank}.db", [rank], seed=rank, ranks=2), tmp_path / "job")
    found = join([read_part(part) for part in part_folders(tmp_path / "job").values()])
    assert isinstance(found.comm, np.ndarray) and found.use is not None and found.phases is not None
    assert not found.comm[:4, 4:].any()
    assert (found.use.together[:4, 4:] == 1.0).all()
    assert found.apart
    assert found.phases.shape[1] == 8
    assert np.allclose(
        found.phases.sum(axis=0).sum(),
        sum(
            one.phases.sum()
            for rank in (0, 1)
            if (one := workload_of_trace(tmp_path / f"t{rank}.db")).phases is not None
        ),
    )


def test_messages_are_lines_between_the_ranks_main_threads(tmp_path: Path) -> None:
    make_job(tmp_path, halo((2,)), 2, "2x4")
    found = join([read_part(part) for part in part_folders(tmp_path).values()])
    assert found.use is not None and not found.apart
    assert found.use.lines[0, 2] == found.use.lines[2, 0] == (1 << 20) / 64  # half of both directions
    assert not found.use.lines[1, 2:].any()


def test_messages_take_the_place_of_the_lines_that_they_go_through(tmp_path: Path) -> None:
    """Ranks recorded together share lines by their messages: these are not counted twice, others stay."""
    parts = parts_of_trace(traced(tmp_path / "t.db", [0, 1]))
    for part in parts:
        part.matrices["lines"][:, 4:] = 50.0  # as emulation counts what is taken from others
    telling = [
        msgspec.structs.replace(
            part,
            facts=msgspec.structs.replace(part.facts, messages=True),
            messages=Messages(
                *(np.array([1 - part.facts.rank]), ["p2p"], np.array([6400]), np.array([1]), np.array([-1]))
            ),
        )
        for part in parts
    ]
    assert rank_graph([summarise(part) for part in parts]).bytes.row(0)[1] > 0
    assert rank_graph([summarise(part) for part in telling]).bytes.row(0)[1] == 2 * 6400
    seen, told = join(parts).use, join(telling).use
    assert seen is not None and told is not None and seen.lines[:4, 4:].any()
    assert told.lines[0, 4] == 100 and told.lines[:4, 4:].sum() == 100
    assert (told.lines[:4, :4] == seen.lines[:4, :4]).all()
    assert told.kept is not None and not told.kept[:4, 4:].any() and told.kept[:4, :4].any()


@pytest.mark.parametrize(("made", "expected"), [([97, 2, 1], 1), ([40, 30, 20, 10], 4), ([0, 0], 1)])
def test_threads_that_hardly_run_need_no_cpu(made: list[float], expected: int, tmp_path: Path) -> None:
    """As those of MPI, beside a rank's own."""
    (part,) = parts_of_trace(traced(tmp_path / "t.db", [0], threads=len(made)))
    summary = summarise(msgspec.structs.replace(part, accesses=np.array(made, np.float64)))
    assert summary.threads == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Dask's, by pandas
def test_others_read_the_parts(tmp_path: Path) -> None:
    import duckdb
    import pandas as pd

    make_job(tmp_path, halo((3,)), 2, "2x4")
    parts = f"read_parquet('{tmp_path}/*/messages.parquet', hive_partitioning = true)"
    sql = f"SELECT rank, sum(bytes)::BIGINT FROM {parts} GROUP BY rank ORDER BY rank"
    assert duckdb.sql(sql).fetchall() == [(0, 1 << 20), (1, 1 << 21), (2, 1 << 20)]
    files = sorted(tmp_path.glob("*/threads.parquet"))
    frame = pd.concat([pd.read_parquet(file) for file in files])
    assert len(frame) == 6 and set(frame["process"]) == {"r0", "r1", "r2"}
    dask = pytest.importorskip("dask.dataframe")
    assert dask.read_parquet(list(map(str, files)))["load"].sum().compute() == frame["load"].sum()


def test_a_part_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    for _ in range(2):
        make_job(tmp_path, halo((2,)), 2, "2x4")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank=0", "rank=1"]


def test_a_part_of_earlier_versions_has_one_share_for_all_lines(tmp_path: Path) -> None:
    (part,) = parts_of_trace(traced(tmp_path / "t.db", [0]))
    matrices = {name: matrix for name, matrix in part.matrices.items() if name != "kept"}
    facts = msgspec.structs.replace(part.facts, matrices=tuple(matrices), use_near=0.2)
    write_part(tmp_path / "job", msgspec.structs.replace(part, facts=facts, matrices=matrices))
    use = join([read_part(one) for one in part_folders(tmp_path / "job").values()]).use
    assert use is not None and use.lines.any() and use.near == pytest.approx(0.2 * use.lines)


def test_a_part_says_its_version(tmp_path: Path) -> None:
    make_job(tmp_path, halo((2,)), 2, "2x4")
    for file in (tmp_path / "rank=0").iterdir():
        assert pq.read_schema(file).metadata[b"numaplan"].decode() == SCHEMA


@pytest.mark.slow
def test_reduce_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = [traced(tmp_path / f"t{rank}.db", [rank], seed=rank, ranks=2) for rank in (0, 1)]
    words = ("reduce", *map(str, traces), "-o", str(tmp_path / "job"), "--engine", "local:1")
    assert main(words) == 0
    assert "parts of 2 ranks" in capsys.readouterr().out
    assert list(part_folders(tmp_path / "job")) == [0, 1]
    assert main((*words, "--json")) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["ranks"] == [0, 1]
    assert (
        main(("reduce", str(traces[0]), str(traces[0]), "-o", str(tmp_path / "job"), "--engine", "local:1"))
        == 2
    )
    assert "rank 0 is in" in capsys.readouterr().err


def test_traces_of_no_rank_are_refused(tmp_path: Path) -> None:
    plain = write_trace(tmp_path / "t.db", {"time_ns": [1]}, [(0, "p0", "0", 1, 1, "app", 0, -1)])
    with pytest.raises(UsageError, match="of no rank of a job"):
        reduce_trace(plain, tmp_path / "job")
