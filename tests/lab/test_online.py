"""Online policies on a kernel with several nodes: the share of local accesses is counted, not estimated."""

import json
from pathlib import Path

import pytest

from tests.support.guests import SharedGuest, guest_program

pytestmark = pytest.mark.lab

# The guest runs on few cpus of ours, and the loop's own work with it: it looks often and may take its time.
HASTY = "--set T=1 --overhead 0.3 --budget moves=50,mb=500"
SAMPLED = 200  # of what the virtual machine's sampler gives in one look; page faults are far fewer


def test_a_policy_brings_threads_and_memory_together(two_nodes: SharedGuest, tmp_path: Path) -> None:
    """Memory made by one thread lies on one node; after the partners have changed, it must follow again.

    The loop begins to look some 15 s after the start: the program runs well beyond that.
    """
    journal = tmp_path / "journal.jsonl"
    policy = f"numaplan {HASTY} --set settle=1 --set patience=4 --journal {journal}"
    shares = {}
    for config, rounds in (("no-autonuma", 1500), ("online-alone", 16000)):
        result = two_nodes.run(guest_program("partners"), 4, rounds, config=config, online=policy)
        assert result["exit_code"] == 0
        shares[config] = result["local_share"]
    assert shares["online-alone"] > shares["no-autonuma"] + 0.05
    looks = [line for line in map(json.loads, journal.read_text().splitlines()) if "observed" in line]
    assert max(look["observed"]["samples"] for look in looks) > SAMPLED
    moved = sum(action["moved"] for look in looks for action in look["actions"] if action["move"] == "thread")
    seconds = looks[-1]["time_s"] - looks[0]["time_s"]
    assert 0 < moved <= 50 * (seconds + 4)
    assert any(action["move"] == "pages" and action["moved"] for look in looks for action in look["actions"])


def test_attached_in_the_guest_and_detached_again(two_nodes: SharedGuest, lab: Path) -> None:
    """A loop that is attached ends with the program and leaves its output alone."""
    program = f"{guest_program('partners')} 4 3000"
    loop = f"{lab}/nlaunch -q --online tm --set T=0.5 --attach $!"
    said, result = two_nodes.said("sh", "-c", f"{program} & {loop}; wait $!")
    assert result["exit_code"] == 0
    assert said.startswith("checksum "), said
