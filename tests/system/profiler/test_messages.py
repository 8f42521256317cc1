"""Messages between ranks: exactly what the program sends, by each MPI and each way of recording them."""

from pathlib import Path

import pytest

from numaplan.analyzer import rank_messages
from numaplan.profiler import Trace
from tests.support.commands import BIN, needs
from tests.support.mpi import built, launcher, run_job
from tests.support.programs import PROGRAMS

pytestmark = pytest.mark.system
TRAFFIC = PROGRAMS / "mpi_traffic.c"
RANKS, ROUNDS, BLOCK = 4, 10, 1000
WAYS = [("openmpi", "monitoring")]

Pairs = dict[tuple[int, int], tuple[float, float]]  # bytes and messages from one rank to another


@pytest.fixture(autouse=True)
def _perf() -> None:
    needs("perf")  # the quickest backend here: what is sent is the same under all


def ring() -> Pairs:
    return {(rank, (rank + 1) % RANKS): (ROUNDS * BLOCK, ROUNDS) for rank in range(RANKS)}


def halo() -> Pairs:
    found: Pairs = {}
    for rank in range(RANKS):
        row, column = divmod(rank, 2)
        for down, right, size in ((-1, 0, 32), (1, 0, 32), (0, -1, 16), (0, 1, 16)):
            if 0 <= row + down < RANKS // 2 and 0 <= column + right < 2:
                found[rank, (row + down) * 2 + column + right] = (ROUNDS * size * 8, ROUNDS)
    return found


def all_to_all() -> Pairs:
    pairs = [(rank, peer) for rank in range(RANKS) for peer in range(RANKS) if rank != peer]
    return {(rank, peer): (100 + 10 * rank + peer, 1) for rank, peer in pairs}


def workers() -> Pairs:
    handed = {(0, rank): (ROUNDS * BLOCK, ROUNDS) for rank in range(1, RANKS)}
    return {**handed, **{(rank, 0): (ROUNDS * 8, ROUNDS) for rank in range(1, RANKS)}}


EXPECTED = {"ring": ring, "halo": halo, "all-to-all": all_to_all, "workers": workers}


def record(tmp_path: Path, kind: str, way: str, *arguments: str) -> Path:
    program = built(TRAFFIC, kind)
    trace = tmp_path / "t.db"
    command = [
        BIN / "nprof",
        "record",
        "--backend",
        "faults",
        "--multiprocess",
        "--messages",
        way,
        "-o",
        trace,
    ]
    done = run_job([*command, *launcher(kind, RANKS), program, *arguments], tmp_path)
    assert done.returncode == 0, done.stderr
    return trace


def sums(trace: Path, *kinds: str) -> Pairs:
    with Trace.open(trace) as opened:
        rows = opened.rows(
            "SELECT rank, peer, sum(bytes)::BIGINT, sum(count)::BIGINT FROM messages"
            f" WHERE rank <> peer AND list_contains({list(kinds)!r}, kind::VARCHAR) GROUP BY rank, peer"
        )
    return {(rank, peer): (size, count) for rank, peer, size, count in rows}


@pytest.mark.parametrize("traffic", EXPECTED)
@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_what_is_sent_is_counted_exactly(tmp_path: Path, kind: str, way: str, traffic: str) -> None:
    trace = record(tmp_path, kind, way, traffic)
    assert sums(trace, "sent") == EXPECTED[traffic]()
    with Trace.open(trace) as opened:
        assert opened.meta["messages"] == way
        assert "warnings" not in opened.meta


def test_ranks_that_each_start_the_recorder(tmp_path: Path) -> None:
    program = built(TRAFFIC, "openmpi")
    command = [BIN / "nprof", "record", "--backend", "faults", "--multiprocess", "-o", tmp_path / "t.db"]
    done = run_job([*launcher("openmpi", RANKS), *command, program, "ring"], tmp_path)
    assert done.returncode == 0, done.stderr
    traces = [Trace.open(tmp_path / f"t.r{rank}.db") for rank in range(RANKS)]
    found = rank_messages(traces)
    for trace in traces:
        trace.close()
    assert found is not None
    assert (found.ranks, found.recorded.tolist()) == (RANKS, list(range(RANKS)))
    assert found.kinds["sent"] == (RANKS * ROUNDS * BLOCK, RANKS * ROUNDS)
