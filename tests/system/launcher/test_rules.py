"""Blocks that come and go are placed by the rule for their call site, however many there are."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from numaplan.mapper import Blocks, Plan, PlanRegion
from tests.support.commands import needs, succeed
from tests.support.launching import build, nlaunch, plan_for
from tests.support.programs import EXAMPLES, compiled
from tests.support.waiting import PATIENCE_S

THREADS = 4


@pytest.mark.slow
def test_recorded_with_few_steps_and_launched_with_more(tmp_path: Path) -> None:
    """What `nmap plan` makes of one short run names every block of a longer one."""
    needs("qemu-x86_64")
    program, trace, plan = build("temporaries"), tmp_path / "trace.db", tmp_path / "plan.json"
    record = ("nprof", "record", "--backend", "emulate", "--period", "20", "-o", trace, "--")
    succeed(*record, program, str(THREADS), "6")
    succeed("nmap", "plan", trace, "--machine", "2x2", "--objective", "balanced", "-o", plan)
    made = Plan.load(plan)
    rules = [entry for entry in made.memory if entry.rule]
    assert len(rules) == THREADS + 1  # one for what all share, and one for each thread's own
    assert all(entry.rule and entry.rule.seen == 6 for entry in rules)
    result, applied = nlaunch(made, tmp_path, [program, str(THREADS), "300"], "--remap", "--strict")
    assert result.returncode == 0, result.stderr
    assert applied["ok"] is True
    assert applied["memory_share"] > 0.98 and applied["access_share"] > 0.9
    for entry in applied["memory"]:
        assert entry["blocks"] == (300 if entry["region"]["sequence"] is None else 0)
        assert entry["misplaced"] == 0 and entry["actual"]


@pytest.mark.slow
def test_recorded_small_and_launched_large(tmp_path: Path) -> None:
    """Each thread's part of the rod is its part of a larger one."""
    needs("qemu-x86_64")
    program, trace, plan = compiled(EXAMPLES / "stencil.c"), tmp_path / "trace.db", tmp_path / "plan.json"
    record = ("nprof", "record", "--backend", "emulate", "--period", "20", "-o", trace, "--")
    succeed(*record, program, "4", "4096", "20")
    succeed("nmap", "plan", trace, "--machine", "2x2", "--objective", "balanced", "-o", plan)
    made = Plan.load(plan)
    scaled = [entry for entry in made.memory if entry.scales]
    assert len(scaled) == 2 and all(entry.region.bytes == 4 * 4096 * 8 for entry in scaled)
    result, applied = nlaunch(made, tmp_path, [str(program), "4", "32768", "20"], "--remap")
    assert result.returncode == 0, result.stderr
    assert not any("bytes today" in reason for reason in applied["reasons"])
    rods = [entry for entry in applied["memory"] if entry["region"]["bytes"] == 4 * 4096 * 8]
    for entry in rods:
        assert sum(entry["planned"].values()) == 4 * 32768 * 8
        assert entry["misplaced"] == 0 and entry["appeared"]


def ruled(plan: Plan, blocks: Blocks, keep: int = 0) -> Plan:
    """A plan with rules in place of each heap block but the first `keep` of each thread."""
    found = {}
    for region in plan.memory:
        key = region.region
        single = key.kind != "heap" or (key.sequence or 0) <= keep
        rule = msgspec.structs.replace(key, sequence=None, bytes=1 << 18)
        runs = (msgspec.structs.replace(region.runs[0], bytes=1 << 18),)
        found[key if single else (key.name, key.thread)] = (
            region if single else PlanRegion(region=rule, policy="bind", runs=runs, blocks=blocks)
        )
    return msgspec.structs.replace(plan, memory=tuple(found.values()))


def test_a_block_in_the_plan_goes_before_its_rule(tmp_path: Path) -> None:
    program = build("temporaries")
    plan = ruled(plan_for([program, "2", "4"]), Blocks(), keep=2)
    result, applied = nlaunch(plan, tmp_path, [program, "2", "50"], "--strict")
    assert result.returncode == 0, result.stderr
    own = [entry for entry in applied["memory"] if entry["region"]["thread"] == "0.1"]
    blocks = {entry["region"]["sequence"]: entry["blocks"] for entry in own}
    assert blocks == {1: 0, 2: 0, None: 48}


def test_only_blocks_of_its_sizes(tmp_path: Path) -> None:
    """The thread's own are 128 to 152 KiB, four sizes of seven below 144 KiB."""
    program = build("temporaries")
    plan = ruled(plan_for([program, "2", "4"]), Blocks(least=0, most=(144 << 10) - 1))
    plan = msgspec.structs.replace(
        plan,
        memory=tuple(
            msgspec.structs.replace(
                entry, region=msgspec.structs.replace(entry.region, bytes=1 << 17), runs=()
            )
            if entry.rule
            else entry
            for entry in plan.memory
        ),
    )
    result, applied = nlaunch(plan, tmp_path, [program, "2", "70"])
    assert result.returncode == 0, result.stderr
    own = [entry for entry in applied["memory"] if entry["region"]["thread"] == "0.1"]
    assert [entry["blocks"] for entry in own] == [40]


def test_many_blocks_that_live_at_once_do_not_use_up_the_kernels_mappings(tmp_path: Path) -> None:
    """More than are remembered: those beyond are left to first touch, and the program does what it does."""
    program = build("hoard")
    plan = ruled(plan_for([program, "3"]), Blocks())
    result, applied = nlaunch(plan, tmp_path, [program, "20000"])
    assert (result.returncode, result.stdout) == (0, b"20000\n"), result.stderr
    (entry,) = [entry for entry in applied["memory"] if entry["region"]["kind"] == "heap"]
    assert 10_000 < entry["blocks"] < 20_000
    assert entry["misplaced"] == 0


def test_the_same_output_without_a_plan(tmp_path: Path) -> None:
    words = [build("temporaries"), "3", "40"]
    plain = subprocess.run(words, capture_output=True, check=True, timeout=PATIENCE_S).stdout
    result, _ = nlaunch(ruled(plan_for([*words[:2], "2"]), Blocks()), tmp_path, words)
    assert result.stdout == plain
