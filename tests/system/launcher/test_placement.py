"""nlaunch puts real programs where the plan says, seen from outside and in its own report."""

import os
import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from numaplan.machine import Machine
from tests.support.launching import NLAUNCH, build, nlaunch, plan_for

pytestmark = pytest.mark.system
PAGE = os.sysconf("SC_PAGESIZE")


def test_every_thread_is_where_the_plan_says_seen_from_outside(tmp_path: Path) -> None:
    argv = [build("tree"), "5", "13"]  # 71 threads
    plan = plan_for(argv)
    plan.save(tmp_path / "plan.json")
    with subprocess.Popen(
        [NLAUNCH, "--plan", tmp_path / "plan.json", *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        pid = int(child.stdout.readline().split()[1])
        found = {}
        for task in Path(f"/proc/{pid}/task").iterdir():
            status = (task / "status").read_text()
            allowed = re.search(r"Cpus_allowed_list:\s+(\S+)", status)
            assert allowed is not None
            found[(task / "comm").read_text().strip()] = allowed[1]
        child.stdin.close()
    assert found == {thread.path: str(thread.cpus[0]) for thread in plan.threads}
    assert len(found) == 71
    assert child.returncode == 0


def test_a_thread_need_not_wait_for_its_creators_cpu_to_come_to_its_own(tmp_path: Path) -> None:
    argv = [build("at_once"), "200"]
    plan = plan_for(argv)
    first = plan.threads[0].cpus
    elsewhere = sum(thread.cpus != first for thread in plan.threads)
    if not elsewhere:
        pytest.skip("one cpu only")
    result, applied = nlaunch(plan, tmp_path, argv, "--strict")
    assert applied["ok"], applied["reasons"]
    # But where it preempts its creator before that can do it: then it does so itself.
    assert 0.5 * elsewhere < int(result.stdout) <= elsewhere


def test_report_of_a_run_as_planned(tmp_path: Path) -> None:
    plan = plan_for([build("memory")])
    result, applied = nlaunch(plan, tmp_path, [build("memory")], "--strict")
    assert result.returncode == 0, result.stderr
    assert applied["ok"] is True and applied["schema"] == "numaplan/applied/1"
    assert all(thread["planned"] == thread["applied"] for thread in applied["threads"])
    assert applied["unplanned"] == [] and applied["missing"] == []
    kinds = {region["region"]["kind"] for region in applied["memory"] if region["appeared"]}
    assert kinds == {"heap", "mmap", "static"}
    node = str(plan.memory[0].runs[0].node)
    for region in applied["memory"]:
        assert region["appeared"]
        size = region["region"]["bytes"]
        if size == 81920:  # the one block that is never touched
            assert region["actual"] == {}
        elif size != 1 << 18:  # that mapping has moved away before it is looked at
            # Neighbours share a page, which is one's only.
            assert set(region["actual"]) == {node} and abs(region["actual"][node] - size) < PAGE
    assert re.fullmatch(
        rb"nlaunch: 2/2 threads, 100 % of [\d.]+ MB as planned; the plan places \d+% of the memory\n",
        result.stderr,
    )


def test_attached_shared_memory_is_placed(tmp_path: Path) -> None:
    argv = [build("shared")]
    plan = plan_for(argv)
    _, applied = nlaunch(plan, tmp_path, argv, "--strict")
    assert applied["ok"] is True, applied["reasons"]
    node = str(plan.memory[0].runs[0].node)
    placed = {
        region["region"]["bytes"]: region["actual"]
        for region in applied["memory"]
        if region["region"]["kind"] == "mmap"
    }
    assert list(placed) == [1 << 20, 300000]
    for size, actual in placed.items():
        assert set(actual) == {node} and abs(actual[node] - size) < PAGE


def test_a_program_that_binds_itself_is_reported(tmp_path: Path) -> None:
    cpus = Machine.load("local").cpus
    if len(cpus) < 2:
        pytest.skip("needs two cpus")
    argv = [build("affinity"), str(cpus[1])]
    plan = plan_for(argv)
    result, applied = nlaunch(plan, tmp_path, argv)
    assert (result.returncode, result.stdout) == (0, b"1 1\n")
    assert applied["ok"] is False
    assert applied["threads"][0]["applied"] == [cpus[1]]
    assert any("set its own affinity" in reason for reason in applied["reasons"])
    strict, _ = nlaunch(plan, tmp_path, argv, "--strict")
    assert strict.returncode == 1


def test_threads_made_on_cpus_of_their_own_keep_them(tmp_path: Path) -> None:
    cpus = Machine.load("local").cpus
    if len(cpus) < 2:
        pytest.skip("needs two cpus")
    argv = [build("made_on"), str(cpus[0]), str(cpus[1])]
    plan = plan_for(argv)
    elsewhere = {"0.1": cpus[1], "0.2": cpus[0]}
    plan = msgspec.structs.replace(
        plan,
        threads=tuple(
            msgspec.structs.replace(one, cpus=(elsewhere.get(one.path, cpus[0]),)) for one in plan.threads
        ),
    )
    result, applied = nlaunch(plan, tmp_path, argv)
    # What it is told is what it asked for; one that was made without a wish is told all.
    assert result.stdout.decode().splitlines() == [f"1 {cpus[0]}", f"1 {cpus[1]}", f"{len(cpus)} {cpus[0]}"]
    reasons = " ".join(applied["reasons"])
    assert all(f"thread {path} is not on" in reasons for path in elsewhere) and "own affinity" in reasons
    for words, more in (("--override",), {}), ((), {"OMP_PLACES": "cores"}):
        result, applied = nlaunch(plan, tmp_path, argv, *words, **more)
        assert [thread["applied"] for thread in applied["threads"]] == [
            [cpus[0]],
            [cpus[1]],
            [cpus[0]],
            [cpus[0]],
        ]
        assert all(line.split()[0] == str(len(cpus)) for line in result.stdout.decode().splitlines())


def test_unplanned_and_missing_threads_are_named(tmp_path: Path) -> None:
    plan = plan_for([build("tree"), "3", "1"])
    result, applied = nlaunch(plan, tmp_path, [build("tree"), "2", "2"])
    assert result.returncode == 0
    assert sorted(thread["path"] for thread in applied["unplanned"]) == ["0.1.2", "0.2.2"]
    assert sorted(applied["missing"]) == ["p0/0.3", "p0/0.3.1"]
    cpus = [list(Machine.load("local").cpus)]
    if len(Machine.load("local").cpu_nodes) == 1:  # they float on the nodes of their process
        assert [thread["applied"] for thread in applied["unplanned"]] == cpus * 2
    lines = result.stderr.decode().splitlines()
    assert len(lines) == 2 and "2 threads are not in the plan" in lines[0] and "never appeared" in lines[0]
    strict, _ = nlaunch(plan, tmp_path, [build("tree"), "2", "2"], "--strict")
    assert strict.returncode == 1


@pytest.mark.slow
def test_ten_thousand_threads_of_which_few_are_planned(tmp_path: Path) -> None:
    plan = plan_for([build("many"), "8"])
    result, applied = nlaunch(plan, tmp_path, [build("many"), "10000"])
    assert result.stdout == b"%d 7\n" % (10000 * 9999 // 2)
    assert applied["missing"] == []
    assert applied["unplanned_count"] == 10002 - len(plan.threads) > len(applied["unplanned"])
    assert all(thread["planned"] == thread["applied"] for thread in applied["threads"])


def test_cpus_that_may_not_be_used_are_named(tmp_path: Path) -> None:
    cpus = Machine.load("local").cpus
    if len(cpus) < 2:
        pytest.skip("needs two cpus")
    plan = plan_for([build("tree"), "3", "1"])
    plan.save(tmp_path / "plan.json")
    command = [NLAUNCH, "--plan", tmp_path / "plan.json", build("tree"), "3", "1"]
    confined = ["taskset", "-c", str(cpus[0]), *command]
    refused = subprocess.run(confined, capture_output=True, check=False)
    assert refused.returncode == 2
    assert b"offline or not allowed here (" + str(cpus[1]).encode() in refused.stderr
    remapped = subprocess.run(
        [*confined[:-3], "--remap", "--strict", *confined[-3:]], stdin=subprocess.DEVNULL, check=False
    )
    assert remapped.returncode == 0


@pytest.mark.slow
def test_a_race_of_starts(tmp_path: Path) -> None:
    argv = [build("tree"), "8", "4"]
    plan = plan_for(argv)
    for _ in range(6):
        result, applied = nlaunch(plan, tmp_path, argv, "--strict")
        assert result.returncode == 0, (result.stderr, applied["reasons"])


def test_blocks_are_found_when_others_come_before_them(tmp_path: Path) -> None:
    plan = plan_for([build("shift")])
    result, applied = nlaunch(plan, tmp_path, [build("shift"), "2"])
    assert result.returncode == 0
    blocks = {region["region"]["bytes"]: region["appeared"] for region in applied["memory"]}
    # Until a block stands where the plan has another one, nothing shows that they have moved.
    assert blocks[180000] and blocks[130000]
    assert sum(region["appeared"] for region in applied["memory"]) >= 5


def test_each_rank_gets_its_part_of_the_plan(tmp_path: Path) -> None:
    cpus = Machine.load("local").cpus
    argv = [build("many"), "2"]
    plan = plan_for(argv)
    ranks = tuple(
        msgspec.structs.replace(
            thread, process=f"r{rank}", thread=-1, cpus=(cpus[rank % len(cpus)],), node=plan.threads[0].node
        )
        for rank in range(2)
        for thread in plan.threads
    )
    app = msgspec.structs.replace(plan.app, threads=len(ranks))
    plan = msgspec.structs.replace(plan, app=app, threads=ranks, memory=())
    for rank in range(2):
        _, applied = nlaunch(plan, tmp_path, argv, OMPI_COMM_WORLD_RANK=str(rank))
        where = {
            (thread["process"], tuple(thread["applied"]))
            for thread in applied["threads"]
            if thread["applied"]
        }
        assert where == {(f"r{rank}", (cpus[rank % len(cpus)],))}
        assert applied["missing"] == [] and len(applied["threads"]) == len(ranks) // 2


@pytest.mark.parametrize("allocator", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0"])
def test_blocks_are_found_whatever_allocates_them(tmp_path: Path, allocator: str) -> None:
    """Planned as glibc had them, and made by another malloc that was preloaded already."""
    paths = [path for path in Path("/usr/lib").glob(f"*/{allocator}") if path.exists()]
    if not paths:
        pytest.skip(f"{allocator} is not installed")
    program = build("memory")
    plan = plan_for([program])
    result, applied = nlaunch(plan, tmp_path, [program], LD_PRELOAD=str(paths[0]))
    assert result.returncode == 0, result.stderr
    blocks = [region for region in applied["memory"] if region["region"]["kind"] == "heap"]
    assert len(blocks) >= 8 and all(region["appeared"] for region in blocks)
    # It maps by itself what it cuts up: that is no block of the program, nor does it shift the blocks.
    assert all(region["misplaced"] == 0 for region in applied["memory"])


@pytest.mark.parametrize("policy", ["bind", "interleave", "next-touch"])
def test_a_plan_cannot_reach_beyond_the_data_of_a_module(tmp_path: Path, policy: str) -> None:
    """A variable that claims to be larger than its module would take all that lies behind it along."""
    program = build("memory")
    plan = plan_for([program])
    (table,) = [region for region in plan.memory if region.region.name == "memory:table"]
    for size in (8 << 20, 1 << 46):
        key = msgspec.structs.replace(table.region, bytes=size)
        runs = (msgspec.structs.replace(table.runs[0], bytes=size),)
        wild = msgspec.structs.replace(table, region=key, policy=policy, runs=runs)
        attacked = msgspec.structs.replace(plan, memory=(wild,))
        result, applied = nlaunch(attacked, tmp_path, [program], NUMAPLAN_NEXT_TOUCH="user")
        assert result.returncode == 0, result.stderr
        assert not applied["memory"][0]["appeared"] and not applied["memory"][0]["actual"]


def test_a_plan_that_places_nothing_runs_the_program_as_it_is(tmp_path: Path) -> None:
    argv = [build("memory")]
    plan = msgspec.structs.replace(plan_for(argv), threads=(), memory=(), alone="nothing to gain")
    result, applied = nlaunch(plan, tmp_path, argv, "--strict")
    assert (result.returncode, result.stderr) == (0, b"nlaunch: the plan places nothing\n")
    assert applied["ok"] is True and applied["threads"] == []


def test_threads_of_a_pool_have_all_its_cpus(tmp_path: Path) -> None:
    cpus = Machine.load("local").cpus
    if len(cpus) < 2:
        pytest.skip("needs two cpus")
    argv = [build("tree"), "3", "1"]
    plan = plan_for(argv)
    threads = [plan.threads[0], *(msgspec.structs.replace(t, cpus=cpus, pool=1) for t in plan.threads[1:])]
    result, applied = nlaunch(
        msgspec.structs.replace(plan, threads=tuple(threads)), tmp_path, argv, "--strict"
    )
    assert result.returncode == 0, result.stderr
    found = {thread["path"]: thread["applied"] for thread in applied["threads"]}
    assert found.pop("0") == list(plan.threads[0].cpus)
    assert found and all(own == list(cpus) for own in found.values())
