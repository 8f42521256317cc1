"""Messages between ranks: exactly what the program sends, by each MPI and each way of recording them."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from numaplan.analyzer import rank_messages
from numaplan.profiler import Trace
from tests.support.commands import BIN, needs, run
from tests.support.mpi import built, launcher, run_job
from tests.support.programs import PROGRAMS, compiled

pytestmark = [pytest.mark.system, pytest.mark.slow]
TRAFFIC = PROGRAMS / "jobs/mpi_traffic.c"
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


def record(
    tmp_path: Path,
    kind: str,
    way: str,
    *arguments: str,
    backend: str = "faults",
    code: int | None = 0,
    ranks: int = RANKS,
    more: Mapping[str, str] | None = None,
) -> Path:
    """A trace of the traffic; code: what the job must end with, None: anything; more: environment."""
    program = built(TRAFFIC, kind)
    # Open MPI's launcher may wait for itself for ever once a rank has ended badly: two threads of its PMIx.
    ended = ["timeout", "-s", "KILL", "60"] if code is None else []
    trace = tmp_path / "t.db"
    command = [
        BIN / "nprof",
        "record",
        "--backend",
        backend,
        "--multiprocess",
        "--messages",
        way,
        "-o",
        trace,
    ]
    done = run_job([*command, *ended, *launcher(kind, ranks), program, *arguments], tmp_path, more)
    assert code is None or done.returncode == code, done.stderr
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
        assert "messages" not in opened.meta.get("warnings", "")


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


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_a_job_that_ends_without_mpi_finalize(tmp_path: Path, kind: str, way: str) -> None:
    found = sums(record(tmp_path, kind, way, "r", "exit", code=None), "sent")
    # With monitoring the first rank has what it sent; the launcher may kill the others before they have.
    assert found == ring() if way == "pmpi" else found and found.items() <= ring().items()


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_a_rank_that_aborts_its_job(tmp_path: Path, kind: str, way: str) -> None:
    trace = record(tmp_path, kind, way, "r", "abort", code=None)
    found = sums(trace, "sent")
    with Trace.open(trace) as opened:
        told = opened.meta.get("warnings", "")
    if way == "pmpi":
        assert found == ring() and "no messages" not in told
    else:  # the others are killed, most often before they have said what they sent
        assert found[1, 2] == (ROUNDS * BLOCK, ROUNDS)
        silent = {rank for rank, _ in ring()} - {rank for rank, _ in found}
        assert ("no messages of rank" in told) == bool(silent)


def groups(tmp_path: Path, way: str, *arguments: str | Path) -> tuple[int, Path]:
    """(the exit code, the trace) of two ranks that talk by an intercommunicator."""
    trace, words = tmp_path / "t.db", ("--backend", "faults", "--multiprocess", "--messages", way)
    program = built(PROGRAMS / "jobs/mpi_groups.c", "openmpi")
    job = ["timeout", "-s", "KILL", "60", *launcher("openmpi", 2), program, *arguments]
    return run_job([BIN / "nprof", "record", *words, "-o", trace, *job], tmp_path).returncode, trace


@pytest.mark.parametrize("spawns", [False, True])
def test_groups_and_jobs_that_talk_to_each_other(tmp_path: Path, spawns: bool) -> None:
    """Open MPI's monitoring crashes there, without us, too."""
    arguments = [built(PROGRAMS / "jobs/mpi_groups.c", "openmpi")] if spawns else []
    code, trace = groups(tmp_path, "auto", *arguments)
    assert code == 0
    with Trace.open(trace) as opened:
        assert opened.meta["messages"] == "pmpi"
    sent = sums(trace, "sent")
    assert {pair: size for pair, (size, _) in sent.items() if size >= BLOCK} == {(0, 1): BLOCK, (1, 0): BLOCK}


def test_a_crash_under_monitoring_names_other_ways_first(tmp_path: Path) -> None:
    code, trace = groups(tmp_path, "monitoring", built(PROGRAMS / "jobs/mpi_groups.c", "openmpi"))
    with Trace.open(trace) as opened:
        told = opened.meta.get("warnings", "")
    if not code:
        pytest.skip("this Open MPI's monitoring does not crash")
    assert told.startswith("a signal ended the program") and "--messages pmpi, or --messages no" in told


def test_what_monitoring_misses_is_told(tmp_path: Path) -> None:
    with Trace.open(record(tmp_path, "openmpi", "monitoring", "po")) as opened:
        assert "what persistent requests send is not counted" in opened.meta["warnings"]


def test_the_model_of_an_allreduce(tmp_path: Path) -> None:
    """Against what Open MPI really sends, as its monitoring sees it."""
    doubles = 1000
    trace = record(tmp_path, "openmpi", "pmpi", str(doubles))
    modelled = sum(size for size, _ in sums(trace, "modelled").values())
    trace = record(tmp_path, "openmpi", "monitoring", str(doubles))
    sent = sum(size for size, _ in sums(trace, "collective").values())
    assert modelled == pytest.approx(sent, rel=0.1)


@pytest.mark.parametrize("ranks", [RANKS, RANKS - 1])
def test_the_model_of_an_allreduce_is_what_mpich_sends(tmp_path: Path, ranks: int) -> None:
    """Between hosts: a number, fewer than ranks, and so many that they are sent in pieces."""
    assert sent_by_ucx(tmp_path, ranks, "r") == dict.fromkeys(range(ranks), (ROUNDS * BLOCK, ROUNDS))
    for doubles in ("1", "3", "200"):
        trace = record(tmp_path, "mpich", "pmpi", doubles, ranks=ranks)
        assert by_rank(sums(trace, "modelled")) == sent_by_ucx(tmp_path, ranks, doubles), doubles


def by_rank(pairs: Pairs) -> dict[int, tuple[float, float]]:
    found = dict.fromkeys((rank for rank, _ in pairs), (0.0, 0.0))
    for (rank, _), (size, count) in pairs.items():
        found[rank] = (found[rank][0] + size, found[rank][1] + count)
    return found


def sent_by_ucx(tmp_path: Path, ranks: int, *arguments: str) -> dict[int, tuple[float, float]]:
    """Bytes and messages that each rank hands to UCX, all ranks taken to be on hosts of their own."""
    folder = tmp_path / "sends"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    counting = compiled(PROGRAMS / "jobs/ucx_sends.c", flags=("-O1", "-shared", "-fPIC", "-ldl"))
    words = [*launcher("mpich", ranks), "-genv", "LD_PRELOAD", counting, built(TRAFFIC, "mpich"), *arguments]
    done = run_job(words, tmp_path, {"UCX_SENDS": str(folder), "MPIR_CVAR_NOLOCAL": "1"})
    assert done.returncode == 0, done.stderr
    if not list(folder.iterdir()):
        pytest.skip("this MPICH does not talk by UCX")
    found = {int(file.name): file.read_text().split() for file in folder.iterdir()}
    return {rank: (float(size), float(count)) for rank, (size, count) in found.items()}


def test_without_an_mpicc_all_else_is_recorded(tmp_path: Path) -> None:
    program = built(TRAFFIC, "mpich")
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("mpirun.mpich", "perf", "hydra_pmi_proxy", "sh", "true"):
        if found := shutil.which(name):
            (path / name).symlink_to(found)
    more = {"PATH": str(path), "XDG_CACHE_HOME": str(tmp_path)}
    trace = record(tmp_path, "mpich", "auto", "r", more=more)
    with Trace.open(trace) as opened:
        assert "messages" not in opened.meta
        assert "MPICH: no mpicc builds the library" in opened.meta["warnings"]
        assert "apt-get install libmpich-dev" in opened.meta["warnings"]
    command = [BIN / "nprof", "record", "--backend", "faults", "--multiprocess", "--messages", "pmpi"]
    done = run_job([*command, *launcher("mpich", RANKS), program, "r"], tmp_path, more)
    assert done.returncode == 3 and b"no mpicc builds the library" in done.stderr
