"""Messages between ranks: exactly what the program sends, by each MPI and each way of recording them."""

import json
from pathlib import Path

import pytest

from numaplan.analyzer import rank_messages
from numaplan.profiler import Trace
from tests.support.commands import BIN, needs, run
from tests.support.mpi import built, launcher, run_job
from tests.support.programs import PROGRAMS

pytestmark = pytest.mark.system
TRAFFIC = PROGRAMS / "mpi_traffic.c"
RANKS, ROUNDS, BLOCK = 4, 10, 1000
WAYS = [("openmpi", "monitoring"), ("openmpi", "pmpi"), ("mpich", "pmpi")]

Pairs = dict[tuple[int, int], tuple[float, float]]  # bytes and messages from one rank to another


@pytest.fixture(autouse=True)
def _perf() -> None:
    needs("perf")  # the quickest backend here: what is sent is the same under all


def ring() -> Pairs:
    return step(ROUNDS * BLOCK, ROUNDS)


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


def together(*parts: Pairs) -> Pairs:
    found: Pairs = {}
    for part in parts:
        for pair, (size, count) in part.items():
            before = found.get(pair, (0, 0))
            found[pair] = (before[0] + size, before[1] + count)
    return found


def step(size: int, count: int) -> Pairs:
    return {(rank, (rank + 1) % RANKS): (size, count) for rank in range(RANKS)}


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


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_what_is_sent_is_counted_exactly(tmp_path: Path, kind: str, way: str) -> None:
    trace = record(tmp_path, kind, way, "rhaw")
    assert sums(trace, "sent") == together(ring(), halo(), all_to_all(), workers())
    with Trace.open(trace) as opened:
        assert opened.meta["messages"] == way
        assert "warnings" not in opened.meta


@pytest.mark.parametrize("kind", ["openmpi", "mpich"])
def test_persistent_requests_and_one_sided_messages(tmp_path: Path, kind: str) -> None:
    trace = record(tmp_path, kind, "pmpi", "po")
    assert sums(trace, "sent") == ring()
    assert sums(trace, "put") == step(BLOCK, 1)
    assert sums(trace, "get") == step(500, 1)
    with Trace.open(trace) as opened:
        senders = opened.rows(
            "SELECT DISTINCT rank, process, path FROM messages JOIN threads USING (thread) ORDER BY 1"
        )
    assert senders == [(rank, f"r{rank}", "0") for rank in range(RANKS)]


def test_ranks_that_each_start_the_recorder(tmp_path: Path) -> None:
    program = built(TRAFFIC, "openmpi")
    command = [BIN / "nprof", "record", "--backend", "faults", "--multiprocess", "-o", tmp_path / "t.db"]
    done = run_job([*launcher("openmpi", RANKS), *command, program, "r"], tmp_path)
    assert done.returncode == 0, done.stderr
    traces = [Trace.open(tmp_path / f"t.r{rank}.db") for rank in range(RANKS)]
    found = rank_messages(traces)
    for trace in traces:
        trace.close()
    assert found is not None
    assert (found.ranks, found.recorded.tolist()) == (RANKS, list(range(RANKS)))
    assert found.kinds["sent"] == (RANKS * ROUNDS * BLOCK, RANKS * ROUNDS)
    told = json.loads(
        run("nmap", "analyze", "--json", *(f"t.r{rank}.db" for rank in range(RANKS)), cwd=tmp_path).stdout
    )
    assert told["messages"]["bytes"] == found.bytes.tolist()
