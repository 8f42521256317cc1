"""A guest that hangs is told from one that is only slow."""

import struct
from pathlib import Path

import pytest

from numaplan.lab.guest.health import Heartbeat, Patience

STALL = (
    "[  358.054135] rcu: INFO: rcu_preempt self-detected stall on CPU\n"
    "[  358.062275] rcu: rcu_preempt kthread {} for {} jiffies! g22981\n"
)
PATIENCE = Patience()
LATE, STARVED = "timer wakeup didn't happen", "starved"


def write_switches(folder: Path, *switches: int) -> None:
    """As the plugin does: a head of 64 bytes, then 128 a vcpu, the third word of which counts."""
    rings = b"".join(struct.pack("<3Q104x", 7, 0, count) for count in switches)
    (folder / "samples").write_bytes(bytes(64) + rings + b"\xff" * 4096)


def booted(folder: Path) -> Heartbeat:
    heartbeat = Heartbeat(folder, 2, True, PATIENCE)
    heartbeat.booted = True
    return heartbeat


@pytest.mark.parametrize(
    ("said", "dead"),
    [
        ("", False),
        ("Linux version 6.1\n", False),
        (STALL.format(LATE, 5258), False),  # twenty seconds: a host may be that crowded
        (STALL.format(LATE, 5258) + STALL.format(LATE, 21012), True),
        (STALL.format(STARVED, 5262), False),
        (STALL.format(STARVED, 21017), True),
        (STALL.format(LATE, "9" * 40), False),
    ],
)
def test_by_what_the_kernel_says(tmp_path: Path, said: str, dead: bool) -> None:
    (tmp_path / "console").write_text(said)
    assert Heartbeat(tmp_path, 2, False, PATIENCE).has_stopped() == dead


def test_a_console_that_is_not_there(tmp_path: Path) -> None:
    assert not Heartbeat(tmp_path, 2, False, PATIENCE).has_stopped()


@pytest.mark.parametrize(
    ("booted", "switches", "limit"),
    [
        (True, 3, PATIENCE.most_missed),
        (False, 3, PATIENCE.most_missed_at_boot),
        (False, 0, PATIENCE.most_missed),
    ],
)
def test_tasks_that_take_no_turns(tmp_path: Path, booted: bool, switches: int, limit: int) -> None:
    write_switches(tmp_path, 0, switches)
    heartbeat = Heartbeat(tmp_path, 2, True, PATIENCE)
    heartbeat.booted = booted
    assert [heartbeat.has_stopped() for _ in range(limit)] == [False] * limit
    assert heartbeat.has_stopped()


def test_one_turn_is_a_sign_of_life(tmp_path: Path) -> None:
    heartbeat = booted(tmp_path)
    for turns in range(2):
        write_switches(tmp_path, 3, 4 + turns)
        assert not any(heartbeat.has_stopped() for _ in range(PATIENCE.most_missed))


def test_between_jobs_nothing_is_expected(tmp_path: Path) -> None:
    write_switches(tmp_path, 3, 4)
    heartbeat = booted(tmp_path)
    for _ in range(3):
        assert not any(heartbeat.has_stopped() for _ in range(PATIENCE.most_missed))
        heartbeat.reset()


def test_what_was_said_before_is_over(tmp_path: Path) -> None:
    (tmp_path / "console").write_text(STALL.format(STARVED, 21017))
    heartbeat = Heartbeat(tmp_path, 2, False, PATIENCE)
    heartbeat.reset()
    assert not heartbeat.has_stopped()
