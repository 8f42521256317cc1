"""Ranks on hosts: exact seats, never worse than as launchers place them, and refusals with the numbers."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from benchmarks.mapper.job_instances import halo
from numaplan.common import UsageError
from numaplan.machine import Cluster
from numaplan.mapper.jobs.placing import RANK_ORDER, ROUND_ROBIN, by_host, place_ranks
from numaplan.mapper.jobs.rank_graph import RankGraph
from numaplan.mapper.threads.sparse import sparse_matrix
from tests.support.properties import examples


def graph(pairs: dict[tuple[int, int], float], ranks: int, threads: int = 1) -> RankGraph:
    rows = np.array([pair for one, other in pairs for pair in ((one, other), (other, one))]).reshape(-1, 2)
    values = np.repeat(list(pairs.values()), 2)
    matrix = sparse.coo_array((values, (rows[:, 0], rows[:, 1])), shape=(ranks, ranks)).tocsr()
    return RankGraph(tuple(range(ranks)), np.full(ranks, threads), sparse_matrix(matrix), True)


def halo_graph(shape: tuple[int, ...], order: np.ndarray | None = None) -> RankGraph:
    peers = halo(shape, order)
    return graph({(one, other): 2.0 for one in peers for other in peers[one] if one < other}, len(peers))


def test_ranks_that_talk_to_the_one_after_next() -> None:
    """Even ranks with even ones: in rank order nearly everything goes between hosts."""
    pairs = {(rank, rank + 2): 1.0 for rank in range(6)} | {(rank, rank + 1): 0.01 for rank in range(7)}
    cluster = Cluster.load("2*1x4:4")
    found = place_ranks(graph(pairs, 8), cluster)
    assert found.between[found.name] < 0.1 * found.between[RANK_ORDER]
    assert sorted(map(sorted, by_host(graph(pairs, 8), cluster, found).values())) == [
        [0, 2, 4, 6],
        [1, 3, 5, 7],
    ]


def test_a_halo_in_three_dimensions() -> None:
    cluster = Cluster.load("8*2x8:8")
    plain = place_ranks(halo_graph((4, 4, 4)), cluster)
    assert plain.between[plain.name] < plain.between[RANK_ORDER]
    shuffled = place_ranks(halo_graph((4, 4, 4), np.random.default_rng(1).permutation(64)), cluster)
    assert shuffled.between[shuffled.name] < 0.6 * shuffled.between[RANK_ORDER]


@given(
    seed=st.integers(0, 1 << 30),
    words=st.sampled_from(["3*1x4:4", "2*1x4:3+1*2x4:5+1*1x2", "5*1x4:2+2*1x2:1"]),
)
@examples(30)
def test_never_worse_than_rank_order_and_within_the_slots(seed: int, words: str) -> None:
    rng, cluster = np.random.default_rng(seed), Cluster.load(words)
    count = int(rng.integers(1, cluster.slots + 1))
    pairs = {
        (int(one), int(other)): float(rng.integers(1, 1000))
        for one, other in rng.integers(0, count, (3 * count, 2))
        if one < other
    }
    hops = rng.integers(1, 6, (len(cluster.hosts), len(cluster.hosts))).astype(float)
    hops = hops + hops.T
    np.fill_diagonal(hops, 0.0)
    for hosts in (cluster, Cluster(hosts=cluster.hosts, distances=tuple(map(tuple, hops.tolist())))):
        found = place_ranks(graph(pairs, count), hosts, effort="fast")
        sizes = np.bincount(found.places, minlength=len(hosts.hosts))
        assert (sizes <= [host.slots for host in hosts.hosts]).all() and sizes.sum() == count
        assert found.between[found.name] <= found.between[RANK_ORDER]
        assert found.hops[found.name] <= found.hops[RANK_ORDER]


def test_near_hosts_for_ranks_that_talk() -> None:
    """Four hosts on two switches: ranks that exchange most share a host, then a switch."""
    near = tuple(tuple(0.0 if a == b else 1.0 if a % 2 == b % 2 else 3.0 for b in range(4)) for a in range(4))
    cluster = Cluster(hosts=Cluster.load("4*1x2:2").hosts, distances=near)
    pairs = {(0, 1): 100.0, (2, 3): 100.0, (4, 5): 100.0, (6, 7): 100.0, (0, 2): 10.0, (4, 6): 10.0}
    found = place_ranks(graph(pairs, 8), cluster)
    assert found.between[found.name] == 20.0
    assert found.hops[found.name] == 20.0  # each over one switch


def test_more_ranks_than_slots() -> None:
    with pytest.raises(UsageError, match="9 ranks for 8 slots on 2 hosts"):
        place_ranks(graph({}, 9), Cluster.load("2*1x4:4"))


def test_ranks_of_many_threads_are_spread_where_there_is_room() -> None:
    found = place_ranks(graph({}, 4, threads=4), Cluster.load("4*1x8"))
    assert np.bincount(found.places, minlength=4).tolist() == [2, 2, 0, 0]
    crowded = place_ranks(graph({}, 16, threads=4), Cluster.load("2*1x8"))
    assert np.bincount(crowded.places).tolist() == [8, 8] and crowded.crowded == 2


def test_nobody_talks() -> None:
    found = place_ranks(graph({}, 6), Cluster.load("3*1x2:2"))
    assert found.name == RANK_ORDER and found.places.tolist() == [0, 0, 1, 1, 2, 2]
    assert found.between == {RANK_ORDER: 0.0, ROUND_ROBIN: 0.0}
