"""Policies by name, parameters by the papers' names."""

from dataclasses import replace

import pytest

from numaplan.common import UsageError
from numaplan.mapper.online.actions import NEEDS, MoveThread
from numaplan.mapper.online.registry import make_policy, policy_names
from tests.support.policy_cases import machine_of, observation

NAMES = [
    "nimar",
    "cimar",
    "lmma",
    "di-plain",
    "di-migrate",
    "dino",
    "first-fit",
    "tm",
    "mb",
    "bce",
    "mb+",
    "excl-base",
    "excl",
    "numaplan",
]


def test_all_names_are_there() -> None:
    assert set(policy_names()) == {*NAMES, "nimar+lmma", "cimar+lmma"}


@pytest.mark.parametrize("suffix", ["", "+next-touch"])
@pytest.mark.parametrize("name", [*NAMES, "nimar+lmma", "cimar+lmma"])
def test_every_policy_decides_and_says_what_it_needs(name: str, suffix: str) -> None:
    policy = make_policy(name + suffix)
    assert policy.needs <= NEEDS.keys()
    assert policy.period_s > 0
    state = None
    for step in range(3):
        seen = observation(
            machine_of(2, 2), [0, 1, 2, 2], accesses=[[5, 9]] * 4, latency=[100, 90, 80, 200],
            time_s=step + 1.0,
            mpki=[1, 5, 150, 3], pages=[(0, 7, 0), (0, 8, 1)], resident=[[4, 4]],
            touches=[(0, 0, 3.0, 120.0), (1, 3, 2.0, 400.0)],
        )  # fmt: skip
        state = policy.decide(seen, state).state


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("nimar", "delta_perf=0.7", ("delta_perf", 0.7)),
        ("cimar", "m=3", ("m", 3)),
        ("cimar", "T=2", ("period_s", 2.0)),
        ("lmma", "S_preload=16", ("s_preload", 16)),
        ("dino", "k=512", ("k", 512)),
        ("numaplan", "horizon=5", ("horizon", 5.0)),
    ],
)
def test_settings_go_by_the_papers_names(name: str, setting: str, value: tuple[str, float]) -> None:
    assert getattr(make_policy(name, [setting]), value[0]) == value[1]


def nodes_of_moves(name: str, closed: frozenset[int]) -> set[int]:
    """Where a policy sends eight threads of two processes on the two cpus of node 0; of four nodes."""
    policy = make_policy(name)
    machine = replace(machine_of(4, 2), closed=closed)
    state, moved = None, set[int]()
    for step in range(6):
        seen = observation(
            machine, [0, 1] * 4, process=[0, 0, 0, 0, 1, 1, 1, 1], time_s=step + 1.0,
            accesses=[[0, 1e6, 0, 1e8]] * 8, operations=[1e9, 1e6] * 4, latency=[100, 200] * 4,
            mpki=[1, 150] * 4, resident=[[0, 0, 0, 4]] * 2,
            pages=[(row // 4, 7 + row, 3) for row in range(8)],
            touches=[(row, thread, 2e6, 200.0) for row in range(8) for thread in (row, row ^ 1)],
        )  # fmt: skip
        decision = policy.decide(seen, state)
        state = decision.state
        moved |= {action.node for action in decision.actions if isinstance(action, MoveThread)}
    return moved


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("lmma", "numaplan")])
def test_no_thread_is_sent_where_none_may_run(name: str) -> None:
    assert nodes_of_moves(name, frozenset()) & {2, 3}
    within = nodes_of_moves(name, frozenset({4, 5, 6, 7}))
    assert within and within <= {0, 1}


def test_a_setting_reaches_the_part_that_knows_it() -> None:
    policy = make_policy("nimar+lmma", ["delta_busy=2", "m=1", "T=3"])
    nimar, lmma = policy.parts  # type: ignore[attr-defined]
    assert (nimar.m, lmma.delta_busy, nimar.period_s, lmma.period_s) == (1, 2.0, 3.0, 3.0)


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("nimarr", ""), ("nimar+dino", ""), ("", ""), ("+next-touch", ""), ("nimar", "delta_busy=2"),
        ("nimar", "m=x"), ("nimar", "m=0"), ("nimar", "m=1.5"), ("nimar", "delta_perf=nan"), ("nimar", "T=0"),
        ("nimar", "delta_perf"), ("nimar", "=3"), ("nimar", "m="),
        ("dino", "window=0"), ("lmma", "s_preload=-1"), ("numaplan", "T=1e300"), ("numaplan", "settle=inf"),
        ("numaplan", f"fill={10**300}"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(name: str, setting: str) -> None:
    with pytest.raises(UsageError):
        make_policy(name, [setting] if setting else [])


def test_defaults_are_the_papers() -> None:
    nimar, lmma, dino = make_policy("nimar"), make_policy("lmma"), make_policy("dino")
    assert (nimar.delta_perf, nimar.m, nimar.q1, nimar.q2, nimar.q4) == (0.8, 5, 2, 4, 3)  # type: ignore[attr-defined]
    assert (lmma.delta_busy, lmma.delta_lat, lmma.s_preload) == (1.3, 1.3, 8)  # type: ignore[attr-defined]
    assert (dino.stay, dino.window, dino.k) == (7, 10, 4096)  # type: ignore[attr-defined]
    assert (dino.devil, dino.super_devil) == (2, 100)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", policy_names())
def test_followed_by_next_touch_a_policy_trades_what_it_traded(name: str) -> None:
    alone, followed = make_policy(name), make_policy(f"{name}+next-touch")
    assert (followed.trades_distance, followed.balances) == (alone.trades_distance, alone.balances)


def test_policies_whose_memory_follows_keep_distance_small() -> None:
    """What moves pages to their threads is judged by distance; what only spreads threads is not."""
    assert make_policy("di-plain").trades_distance and not make_policy("di-migrate").trades_distance
    assert make_policy("excl").trades_distance and not make_policy("nimar+lmma").trades_distance
