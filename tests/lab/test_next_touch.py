"""Next-touch on several nodes: pages follow whoever touches them, by a call and by a plan's policy."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from numaplan.launcher.launch import LIBRARY
from numaplan.launcher.touching import include_folder
from numaplan.profiler.machine import Machine
from tests.system.launching import plan_for

pytestmark = pytest.mark.lab
HERE = Path(__file__).resolve().parent
PAGES, ROUNDS = 1024, 100
SUM = PAGES * 64 * sum(range(1, ROUNDS + 1))
STILL = "echo 0 > /proc/sys/kernel/numa_balancing 2>/dev/null; "  # the kernel's own moving is another matter


def compiled(folder: Path, source: Path) -> Path:
    program = folder / source.stem
    flags = ["-std=gnu11", "-O1", "-D_GNU_SOURCE", f"-I{include_folder()}"]
    subprocess.run(["cc", *flags, "-o", program, source, "-lpthread"], check=True, timeout=60)
    return program


def in_lab(lab: Path, machine: str, script: str) -> tuple[str, float]:
    """What a shell script printed, and the local share of all that it did."""
    command = [lab / "nlab", "run", "--machine", machine, "--json", "--timeout", "200", "--", "sh", "-c"]
    done = subprocess.run(
        [*command, STILL + script], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr, msgspec.json.decode(done.stdout)["local_share"]


@pytest.mark.parametrize("machine", ["4x2", "2x4"])
def test_pages_follow_who_touches_them(lab: Path, tmp_path: Path, machine: str) -> None:
    follow = compiled(tmp_path, HERE / "follow.c")
    before, share_before = in_lab(lab, machine, f"LD_PRELOAD={LIBRARY} {follow} none")
    after, share_after = in_lab(lab, machine, f"LD_PRELOAD={LIBRARY} {follow} call {PAGES} {ROUNDS}")
    assert f"{PAGES // int(machine[0])} of {PAGES} pages, sum {SUM}" in before
    assert f"{PAGES} of {PAGES} pages, sum {SUM}" in after
    assert share_before < 0.7 and share_after > share_before + 0.2


def test_touched_pages_wait_for_few_others(lab: Path, tmp_path: Path) -> None:
    """Pages are moved several at a time: most have followed at once, all when somebody wants to know."""
    partly = compiled(tmp_path, HERE / "partly.c")
    said, _ = in_lab(lab, "2x2", f"LD_PRELOAD={LIBRARY} {partly}")
    words = next(line for line in said.splitlines() if line.startswith("touched")).split()
    found = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    assert 980 <= found["touched"] < 1000
    # Half of them were touched from where they were.
    assert found == {**found, "asked": 1000, "of": 500, "all": 4096, "cleared": 1000, "lost": 0}


def test_marked_memory_is_right_while_it_moves(lab: Path, tmp_path: Path) -> None:
    program = compiled(tmp_path, HERE.parent / "system" / "programs" / "next_touch.c")
    names = ("threads", "chain", "signals", "forks", "mappings", "calls")
    script = "; ".join(f"LD_PRELOAD={LIBRARY} {program} {name}" for name in names)
    said, _ = in_lab(lab, "4x2", script)
    for name in names:
        assert f"{name}: 0 wrong" in said, said


def test_a_plan_that_says_next_touch(lab: Path, tmp_path: Path) -> None:
    follow = compiled(tmp_path, HERE / "follow.c")
    argv = [str(follow), "none", str(PAGES), "150"]
    plan = plan_for(argv, Machine.load("4x2"))
    regions = [region for region in plan.memory if region.region.bytes == PAGES * 4096]
    assert len(regions) == 1
    moving = msgspec.structs.replace(regions[0], policy="next-touch")
    plan = msgspec.structs.replace(plan, memory=(moving,))
    plan.save(tmp_path / "plan.json")
    command = [lab / "nlab", "compare", "--machine", "4x2", "--plan", tmp_path / "plan.json", "--json"]
    command += ["--configs", "no-autonuma,plan", "--timeout", "200", "--", *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    shares = {
        name: found["local_share"]["median"]
        for name, found in msgspec.json.decode(done.stdout)["configs"].items()
    }
    assert shares["no-autonuma"] < 0.5 and shares["plan"] >= 0.95, shares
