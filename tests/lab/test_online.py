"""Online policies on a kernel with several nodes: the share of local accesses is counted, not estimated."""

import json
from pathlib import Path

import pytest

from tests.lab.test_running import nlab

pytestmark = pytest.mark.lab

# The guest runs on few cpus of ours, and the loop's own work with it: it looks often and may take its time.
HASTY = "--set T=1 --overhead 0.3 --budget moves=50,mb=500"
SAMPLED = 200  # of what the virtual machine's sampler gives in one look; page faults are far fewer


def test_a_policy_brings_threads_and_memory_together(lab: Path, programs: Path, tmp_path: Path) -> None:
    """Memory made by one thread lies on one node; after the partners have changed, it must follow again."""
    journal = tmp_path / "journal.jsonl"
    words = ["compare", "-m", "2x2", "--repeat", "1", "--configs", "no-autonuma,online-alone"]
    policy = f"numaplan {HASTY} --set settle=1 --set patience=4 --journal {journal}"
    done = nlab(lab, *words, "--json", "--online", policy, "--", programs / "partners", "4", "12000")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["configs"]
    alone = found["online-alone"]["local_share"]["median"]
    assert alone > found["no-autonuma"]["local_share"]["median"] + 0.05
    looks = [line for line in map(json.loads, journal.read_text().splitlines()) if "observed" in line]
    assert max(look["observed"]["samples"] for look in looks) > SAMPLED
    moved = sum(action["moved"] for look in looks for action in look["actions"] if action["move"] == "thread")
    seconds = looks[-1]["time_s"] - looks[0]["time_s"]
    assert 0 < moved <= 50 * (seconds + 4)
    assert any(action["move"] == "pages" and action["moved"] for look in looks for action in look["actions"])


def test_attached_in_the_guest_and_detached_again(lab: Path, programs: Path) -> None:
    """A loop that is attached ends with the program and leaves its output alone."""
    script = f"{programs}/partners 4 3000 & {lab}/nlaunch -q --online tm --set T=0.5 --attach $!; wait $!"
    done = nlab(lab, "run", "-m", "2x2", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"checksum ")
