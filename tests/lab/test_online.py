"""Online policies on a kernel with several nodes: the share of local accesses is counted, not estimated."""

import json
from pathlib import Path

import pytest

from numaplan.lab.guest.guest import Guest
from tests.support.guests import SharedGuest, guest_program, said_uncounted

pytestmark = [pytest.mark.lab, pytest.mark.slow]

# The guest runs on few cpus of ours, and the loop's own work with it: it looks often and may take its time.
HASTY = "--set T=1 --overhead 0.3 --budget moves=50,mb=500"
PATIENCE_S, IN_VAIN = 400, 3  # how long programs/lab/together.c waits, and its exit code then
SAMPLED = 200  # of what the virtual machine's sampler gives in one look; page faults are far fewer


def test_a_policy_brings_threads_and_memory_together(two_nodes: SharedGuest, tmp_path: Path) -> None:
    """Memory made by one thread lies on one node; after the partners have changed, it must follow again.

    The program waits for that, twice; without the loop in vain.
    """
    journal = tmp_path / "journal.jsonl"
    policy = f"numaplan {HASTY} --set settle=1 --set patience=4 --journal {journal}"
    shares = {}
    for config, seconds, code in (("no-autonuma", 1, IN_VAIN), ("online-alone", PATIENCE_S, 0)):
        result = two_nodes.run(guest_program("together"), 4, seconds, config=config, online=policy)
        assert result["exit_code"] == code
        shares[config] = result["local_share"]
    assert shares["online-alone"] > shares["no-autonuma"] + 0.05
    looks = [line for line in map(json.loads, journal.read_text().splitlines()) if "observed" in line]
    assert max(look["observed"]["samples"] for look in looks) > SAMPLED
    moved = sum(action["moved"] for look in looks for action in look["actions"] if action["move"] == "thread")
    seconds = looks[-1]["time_s"] - looks[0]["time_s"]
    assert 0 < moved <= 50 * (seconds + 4)
    assert any(action["move"] == "pages" and action["moved"] for look in looks for action in look["actions"])


def test_attached_in_the_guest_and_detached_again(uncounted: Guest, lab: Path, tmp_path: Path) -> None:
    """A loop that is attached ends with the program and leaves its output alone."""
    journal = tmp_path / "journal.jsonl"
    script = (
        f"{guest_program('together')} 2 0 & program=$!\n"
        f"{lab}/nlaunch -q --online tm {HASTY} --journal {journal} --attach $program & loop=$!\n"
        f"until grep -qs observed {journal}; do sleep 0.1; done\n"
        "kill $program; wait $program && wait $loop"
    )
    assert said_uncounted(uncounted, ["/bin/sh", "-c", script]) == "told to end\n"
