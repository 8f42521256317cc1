"""Next-touch on several nodes: pages follow whoever touches them, by a call and by a plan's policy."""

from pathlib import Path

import msgspec
import pytest

from numaplan.launcher import LIBRARY
from numaplan.machine import Machine
from tests.support.guests import SharedGuest, guest_program
from tests.support.launching import plan_for

pytestmark = [pytest.mark.lab, pytest.mark.slow]
PAGES, ROUNDS = 1024, 50
SUM = PAGES * 64 * sum(range(1, ROUNDS + 1))


def in_lab(guest: SharedGuest, script: str) -> tuple[str, float]:
    """What a shell script printed, and the local share of all that it did."""
    said, result = guest.said("sh", "-c", script, config="no-autonuma")
    assert result["exit_code"] == 0, said
    return said, result["local_share"]


def test_pages_follow_who_touches_them(four_nodes: SharedGuest) -> None:
    follow = guest_program("follow", "-O1")
    before, share_before = in_lab(four_nodes, f"LD_PRELOAD={LIBRARY} {follow} none {PAGES} {ROUNDS}")
    after, share_after = in_lab(four_nodes, f"LD_PRELOAD={LIBRARY} {follow} call {PAGES} {ROUNDS}")
    assert f"{PAGES // 4} of {PAGES} pages, sum {SUM}" in before
    assert f"{PAGES} of {PAGES} pages, sum {SUM}" in after
    assert share_before < 0.7 and share_after > share_before + 0.2


def test_touched_pages_wait_for_few_others(two_nodes: SharedGuest) -> None:
    """Pages are moved several at a time: most have followed at once, all when somebody wants to know."""
    partly = guest_program("partly", "-O1")
    said, _ = in_lab(two_nodes, f"LD_PRELOAD={LIBRARY} {partly}")
    words = next(line for line in said.splitlines() if line.startswith("touched")).split()
    found = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    assert 980 <= found["touched"] < 1000
    # Half of them were touched from where they were.
    assert found == {**found, "asked": 1000, "of": 500, "all": 4096, "cleared": 1000, "lost": 0}


def test_marked_memory_is_right_while_it_moves(four_nodes: SharedGuest) -> None:
    program = guest_program("launcher/next_touch", "-O1")
    # Fewer pages of those that are fought for: each still moves many times, and more threads meet on one.
    tests = ("threads 16", "chain", "signals", "forks 16", "mappings", "calls")
    script = "; ".join(f"LD_PRELOAD={LIBRARY} {program} {test}" for test in tests)
    said, _ = in_lab(four_nodes, script)
    for test in tests:
        assert f"{test.split()[0]}: 0 wrong" in said, said


def test_a_plan_that_says_next_touch(four_nodes: SharedGuest, tmp_path: Path) -> None:
    argv = [str(guest_program("follow", "-O1")), "none", str(PAGES), "150"]
    plan = plan_for(argv, Machine.load("4x2"))
    regions = [region for region in plan.memory if region.region.bytes == PAGES * 4096]
    assert len(regions) == 1
    moving = msgspec.structs.replace(regions[0], policy="next-touch")
    msgspec.structs.replace(plan, memory=(moving,)).save(tmp_path / "plan.json")
    shares = {}
    for config in ("no-autonuma", "plan"):
        result = four_nodes.run(*argv, config=config, plan=str(tmp_path / "plan.json"))
        assert result["exit_code"] == 0
        shares[config] = result["local_share"]
    assert shares["no-autonuma"] < 0.5 and shares["plan"] > 0.9, shares
