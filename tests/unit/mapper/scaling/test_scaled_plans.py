"""Plans for more threads than were recorded, from traces."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest

from numaplan.common import UsageError
from numaplan.mapper import Plan, PlanOptions, Workload, make_plan
from numaplan.mapper.commands.main import main
from numaplan.mapper.scaling.scaled import scaled_workload
from numaplan.profiler import EVENT_CODE, Machine
from tests.support.traces import write_trace

PAGE, START = 4096, 1 << 24
PAGES = 4  # of each thread's part, in the array and in its block


def record(
    path: Path,
    n: int,
    *,
    pages: int = PAGES,
    shuffled: bool = False,
    seed: int = 0,
    more: bool = False,
    away: int = 1,
) -> Path:
    """A ring: each of n threads writes its part of an array and its own block, and reads the first page of
    the part that is `away`; the main thread, the first of them, made all. more: one more block before the
    threads' own."""
    rng = np.random.default_rng(seed + n)
    count = 4000 * n
    role = rng.permutation(n) if shuffled else np.arange(n)
    thread = rng.integers(0, n, count)
    what = rng.random(count)
    mine = role[thread]
    own_page = rng.integers(0, pages, count)
    part = np.where(what < 0.3, (mine + away) % n, mine)
    page = part * pages + np.where(what < 0.3, 0, own_page)
    block = what > 0.7
    blocks = START + (1 << 26)
    address = np.where(
        block, blocks + mine * pages * 2 * PAGE + own_page * PAGE, START + page * PAGE
    ) + 64 * rng.integers(0, 64, count)
    begin = np.sort(rng.integers(0, 10**6, 40 * n * pages))
    first = START + PAGE * np.resize(np.arange(n * pages), len(begin))
    samples = {
        "time_ns": np.concatenate([begin, np.sort(rng.integers(2 * 10**6, 10**9, count))]),
        "thread": np.concatenate([np.zeros(len(begin), np.int64), thread]),
        "cpu": np.full(count + len(begin), -1),
        "addr": np.concatenate([first, address]),
        "event": np.full(count + len(begin), EVENT_CODE["store"]),
        "is_write": np.concatenate([np.ones(len(begin), bool), what >= 0.3]),
        "region": np.concatenate([np.zeros(len(begin), np.int64), np.where(block, mine + 1, 0)]),
    }
    names = ["0", *(f"0.{number}" for number in range(1, n))]
    threads = [(i, "p0", name, i, 1, "app", 10**6 * (i > 0), -1) for i, name in enumerate(names)]
    regions = [(0, "p0", "heap", "app+0x1", "b", START, n * pages * PAGE, 0, 1, 0, -1)]
    regions += [
        (
            k + 1,
            "p0",
            "heap",
            "app+0x2",
            "b",
            blocks + k * pages * 2 * PAGE,
            pages * PAGE,
            0,
            2 + more + k,
            0,
            -1,
        )
        for k in range(n)
    ]
    return write_trace(path, samples, threads, regions, {"period": 100, "build_id": "b"}, "4x2")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("scaling")
    paths = [record(folder / f"t{n}.db", n) for n in (4, 8)]
    for path in paths:
        with duckdb.connect(str(path)) as opened:
            opened.execute("INSERT INTO names VALUES (0, -1, 'grid', 'double[]', 'a.c', 42, 'main', 8, -1)")
            opened.execute(
                "INSERT INTO names SELECT region, -1, '', '', 'a.c', 50, 'part', 0, -1 FROM "
                "regions WHERE region > 0"
            )
    return paths


@pytest.fixture(scope="module")
def sixteen(recorded: list[Path]) -> Workload:
    return scaled_workload(recorded, 16, force=False)


def test_a_plan_for_more_threads_puts_neighbours_and_their_memory_together(sixteen: Workload) -> None:
    plan = make_plan(sixteen, Machine.load("4x4"), PlanOptions()).plan
    assert [thread.path for thread in plan.threads] == ["0", *(f"0.{i}" for i in range(1, 16))]
    nodes = [thread.node for thread in plan.threads]
    assert sum(one != other for one, other in zip(nodes, [*nodes[1:], nodes[0]], strict=True)) == 4
    assert plan.app.threads == 16
    array = next(region for region in plan.memory if region.region.name == "app+0x1")
    assert array.region.bytes == 16 * PAGES * PAGE
    for run in array.runs:
        for page in range(run.offset // PAGE, (run.offset + run.bytes) // PAGE):
            # The first page of a part is read more than it is written.
            assert page % PAGES == 0 or run.node == nodes[page // PAGES]
    blocks = {region.region.sequence: region for region in plan.memory if region.region.name == "app+0x2"}
    assert sorted(blocks) == list(range(2, 18))
    for sequence, region in blocks.items():
        assert {run.node for run in region.runs} == {nodes[sequence - 2]}
    assert array.source == "grid (double[]) a.c:42 in main"
    assert {region.source for region in blocks.values()} == {"heap a.c:50 in part"}
    again = Plan.from_json(plan.to_json())
    assert again == plan


def test_a_plan_says_by_which_pattern_and_how_well_it_predicts(
    recorded: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "plan.json"
    command = ["plan", *map(str, recorded), "--threads", "16", "--machine", "4x4", "-o", str(output)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "16 threads share the work, recorded were 4, 8" in said and "distance 1 periodic" in said
    assert main([*command, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)["scaling"]
    assert answer["pattern"][0] == "neighbours" and answer["quality"] > 0.9 and answer["enough"]
    assert {one["threads"] for one in answer["left_out"]} == {4, 8}
    assert Plan.load(output).provenance["scaling"] == answer
    assert main(["show", str(output)]) == 0
    assert "carried over" in capsys.readouterr().out


@pytest.mark.slow
def test_threads_without_roles_are_refused_but_for_force(tmp_path: Path) -> None:
    paths = [record(tmp_path / f"{n}.db", n, shuffled=True) for n in (8, 16)]
    with pytest.raises(UsageError, match="does not predict"):
        scaled_workload(paths, 32, force=False)
    assert len(scaled_workload(paths, 32, force=True).threads) == 32


def test_one_of_two_plans_that_have_nothing_in_common_is_refused_but_for_force(tmp_path: Path) -> None:
    paths = [record(tmp_path / f"{n}.db", n, away=n // 2) for n in (4, 8)]
    with pytest.raises(UsageError, match="do not tell 'a half of the threads away' from 'a square grid"):
        scaled_workload(paths, 16, force=False)
    forced = scaled_workload(paths, 16, force=True)
    assert forced.sources["scaling"]["unsure"]["open"] and not forced.sources["scaling"]["enough"]


def test_two_threads_beside_one_larger_number_are_refused_but_for_force(tmp_path: Path) -> None:
    paths = [record(tmp_path / f"{n}.db", n) for n in (2, 8)]
    with pytest.raises(UsageError, match="two numbers of 4 threads or more, recorded were 2, 8"):
        scaled_workload(paths, 16, force=False)
    assert len(scaled_workload(paths, 16, force=True).threads) == 16


def test_recordings_that_do_not_tell_are_refused(recorded: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one recording"):
        scaled_workload(recorded[:1], 16, force=False)
    same = record(tmp_path / "same.db", 4, seed=1)
    with pytest.raises(UsageError, match="the same number of threads"):
        scaled_workload([recorded[0], same], 16, force=False)
    with pytest.raises(UsageError, match="can be placed"):
        scaled_workload(recorded, 1, force=False)


@pytest.mark.parametrize(
    "options", [["--force"], ["--threads", "16", "--comm", "comm.csv"]], ids=["force", "matrix"]
)
def test_options_that_do_not_go_together(options: list[str], recorded: list[Path], tmp_path: Path) -> None:
    traces = [] if "--comm" in options else [str(recorded[0])]
    (tmp_path / "comm.csv").write_text("0,1\n1,0\n")
    assert main(["plan", *traces, "-o", str(tmp_path / "p.json"), *options]) == 2


def test_several_recordings_without_threads_are_runs_as_before(
    recorded: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "plan.json"
    assert main(["plan", *map(str, recorded), "--machine", "4x2", "-o", str(output)]) == 0
    capsys.readouterr()
    assert "scaling" not in Plan.load(output).provenance
