"""Several runs: whether threads keep their roles, the mean of runs, ranks side by side, differences."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.analyzer import (
    Analysis,
    analyze_trace,
    compare_runs,
    compare_traces,
    match_threads,
    merge_analyses,
)
from numaplan.common import UsageError
from numaplan.mapper.commands.main import main
from numaplan.profiler import EVENT_CODE, Trace
from tests.support.properties import examples
from tests.support.traces import write_trace

THREADS = 8
OWN = 1 << 16
Links = dict[int, list[int]]
CHAIN: Links = {role: [role - 1] for role in range(1, THREADS)}
FLAT: Links = {role: [other for other in range(THREADS) if other != role] for role in range(THREADS)}


def record(
    path: Path,
    links: Links,
    names: Sequence[int] = range(THREADS),
    *,
    seed: int = 1,
    process: str = "p0",
    busy: float = 1.0,
    count: int = 40_000,
) -> Path:
    """A trace of roles that write their own memory and read that of the roles they are linked to.

    names: thread number of each role; busy: how often role 0 runs against the others.
    """
    rng = np.random.default_rng(seed)
    rate = np.array([busy, *[1.0] * (THREADS - 1)])
    role = rng.choice(THREADS, count, p=rate / rate.sum())
    reads = rng.random(count) < 0.5
    whose = role.copy()
    for one, others in links.items():
        chosen = reads & (role == one)
        whose[chosen] = rng.choice(others, int(chosen.sum()))
    linked = whose != role
    addr = (1 << 24) + whose * OWN + rng.integers(0, 8192, count)
    is_write = ~linked & (rng.random(count) < 0.6)
    samples = {
        "time_ns": np.sort(rng.integers(0, 10**9, count)),
        "thread": np.asarray(names)[role],
        "addr": addr,
        "event": np.where(is_write, EVENT_CODE["store"], EVENT_CODE["load"]),
        "is_write": is_write,
    }
    paths = ["0", *(f"0.{number}" for number in range(1, THREADS))]
    threads = [(i, process, name, i, 1, "t", 0, -1) for i, name in enumerate(paths)]
    return write_trace(path, samples, threads, meta={"period": 1000}, machine="2x4")


def analysis(path: Path) -> Analysis:
    with Trace.open(path) as trace:
        return analyze_trace(trace)


@examples(25)
@given(st.integers(0, 1000), st.integers(2, 9))
def test_a_permutation_is_found_and_never_worse_than_none(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    half = np.triu(rng.random((count, count)) ** 3, 1)
    one = half + half.T
    names = rng.permutation(count)
    other = np.empty_like(one)
    other[np.ix_(names, names)] = one
    roles = match_threads(one, other)
    assert sorted(roles.tolist()) == list(range(count))
    assert (one * other[np.ix_(roles, roles)]).sum() >= (one * other).sum() - 1e-9
    assert match_threads(one, one).tolist() == list(range(count))


def test_roles_that_hold(tmp_path: Path) -> None:
    one, other = (analysis(record(tmp_path / f"{seed}.db", CHAIN, seed=seed)) for seed in (1, 2))
    agreement = compare_runs(one, other)
    assert agreement.verdict == "holds" and agreement.correlation > 0.95
    assert "keep their roles" in agreement.sentence()


def test_swapped_roles_are_noticed_and_matched(tmp_path: Path) -> None:
    names = [4, 2, 7, 0, 6, 1, 3, 5]
    one = analysis(record(tmp_path / "a.db", CHAIN, seed=1))
    other = analysis(record(tmp_path / "b.db", CHAIN, names, seed=2))
    agreement = compare_runs(one, other)
    assert agreement.verdict == "roles"
    assert agreement.correlation < 0.5 < 0.95 < agreement.matched
    assert agreement.roles in (names, names[::-1])  # a chain is the same from both ends
    assert "swap roles" in agreement.sentence()


@pytest.mark.slow
def test_flat_and_differing_runs_are_not_taken_for_swapped_roles(tmp_path: Path) -> None:
    flat = [analysis(record(tmp_path / f"flat{seed}.db", FLAT, seed=seed)) for seed in (1, 2)]
    assert compare_runs(*flat).verdict == "flat"
    star = analysis(record(tmp_path / "star.db", {role: [0] for role in range(1, THREADS)}))
    pairs = analysis(record(tmp_path / "pairs.db", {role: [role ^ 1] for role in range(THREADS)}))
    assert compare_runs(star, pairs).verdict == "differs"


def test_the_mean_of_runs(tmp_path: Path) -> None:
    one, other = (analysis(record(tmp_path / f"{seed}.db", CHAIN, seed=seed)) for seed in (1, 2))
    merged = merge_analyses([one, other])
    assert np.allclose(merged.comm, (one.comm + other.comm) / 2)
    assert np.allclose(merged.loads, (one.loads + other.loads) / 2)
    assert np.allclose(merged.standard_error, np.hypot(one.standard_error, other.standard_error) / 2)
    assert merged.samples == one.samples + other.samples
    assert merged.timeline.per_thread.sum() == pytest.approx(one.samples)
    assert one.confidence <= merged.confidence <= 1
    assert merge_analyses([one]) is one
    with pytest.raises(UsageError, match="no trace"):
        merge_analyses([])


@pytest.mark.slow
def test_runs_of_ranks_are_joined_by_rank(tmp_path: Path) -> None:
    """Two runs of two ranks, recorded apart: means of each rank's runs, the ranks side by side."""
    made = {
        (run, rank): analysis(record(tmp_path / f"{run}{rank}.db", CHAIN, seed=run, process=f"r{rank}"))
        for run in (1, 2)
        for rank in (0, 1)
    }
    merged = merge_analyses(list(made.values()))
    assert [len(part.members) for part in merged.pairs.parts] == [THREADS, THREADS]
    for rank in (0, 1):
        own = slice(rank * THREADS, (rank + 1) * THREADS)
        mean = (made[1, rank].comm + made[2, rank].comm) / 2
        assert np.allclose(merged.comm[own, own], mean)
    assert merged.comm.sum() == pytest.approx(merged.pairs.total())
    assert any("cannot be seen" in note for note in merged.notes)


def test_ranks_stand_side_by_side(tmp_path: Path) -> None:
    ranks = [analysis(record(tmp_path / f"{r}.db", CHAIN, process=r)) for r in ("r0", "r1")]
    merged = merge_analyses(ranks)
    assert [thread.process for thread in merged.threads] == ["r0"] * THREADS + ["r1"] * THREADS
    assert [thread.thread for thread in merged.threads] == list(range(2 * THREADS))
    assert np.array_equal(merged.comm[:THREADS, :THREADS], ranks[0].comm)
    assert not merged.comm[:THREADS, THREADS:].any()
    assert merged.timeline.per_thread.shape[1] == 2 * THREADS
    assert any("cannot be seen" in note for note in merged.notes)
    with pytest.raises(UsageError, match="0 threads in common"):
        compare_runs(*ranks)


def test_only_real_differences_are_sure(tmp_path: Path) -> None:
    same = [analysis(record(tmp_path / f"{seed}.db", CHAIN, seed=seed)) for seed in (1, 2)]
    upper = np.triu_indices(THREADS, 1)
    assert compare_traces(*same).sure[upper].mean() < 0.2
    changed = {**CHAIN, 5: [0]}
    other = analysis(record(tmp_path / "c.db", changed, seed=3, busy=3.0))
    difference = compare_traces(same[0], other)
    assert difference.sure[0, 5] and difference.comm[0, 5] > 0.05
    assert difference.sure[4, 5] and difference.comm[4, 5] < -0.05
    assert difference.loads[0] == pytest.approx(3 / 10 - 1 / 8, abs=0.02)


def nmap(*words: str) -> int:
    return main(words)


@pytest.mark.slow
def test_analyze_says_whether_identity_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(record(tmp_path / f"{seed}.db", CHAIN, seed=seed)) for seed in (1, 2)]
    swapped = str(record(tmp_path / "s.db", CHAIN, [4, 2, 7, 0, 6, 1, 3, 5]))
    assert nmap("analyze", *runs, "--json") == 0
    document: dict[str, Any] = msgspec.json.decode(capsys.readouterr().out)
    assert document["merged"] is True
    assert document["runs"][1]["against_first"]["verdict"] == "holds"
    assert len(document["difference"]["comm"]) == THREADS
    assert nmap("analyze", runs[0], swapped, "--json") == 0
    document = msgspec.json.decode(capsys.readouterr().out)
    assert document["merged"] is False
    assert document["runs"][1]["against_first"]["roles"][0] in ("0.4", "0.5")
    assert np.allclose(document["comm"], analysis(Path(runs[0])).comm)
    assert nmap("analyze", *runs, swapped) == 0
    assert "swap" in capsys.readouterr().out
