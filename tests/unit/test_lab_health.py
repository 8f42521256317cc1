"""A guest whose timer died is told from one that is only slow, by what its kernel says."""

from pathlib import Path

import pytest

from numaplan.launcher.lab.health import lost_its_timer

STALL = (
    "[  358.054135] rcu: INFO: rcu_preempt self-detected stall on CPU\n"
    "[  358.062275] rcu: rcu_preempt kthread timer wakeup didn't happen for {} jiffies! g22981\n"
)


@pytest.mark.parametrize(
    ("said", "dead"),
    [
        ("", False),
        ("Linux version 6.1\n", False),
        (STALL.format(5258), False),  # twenty seconds: a host may be that crowded
        (STALL.format(5258) + STALL.format(21012), True),
        (STALL.format("9" * 40), False),
    ],
)
def test_by_what_the_kernel_says(tmp_path: Path, said: str, dead: bool) -> None:
    (tmp_path / "console").write_text(said)
    assert lost_its_timer(tmp_path / "console") == dead


def test_a_console_that_is_not_there(tmp_path: Path) -> None:
    assert not lost_its_timer(tmp_path / "console")
