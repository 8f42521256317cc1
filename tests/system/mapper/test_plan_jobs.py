"""Plans of several processes, from recording to what was applied: a job's ranks, and a tree of forks."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from numaplan.mapper import JobPlan, Plan
from tests.support.commands import BIN, clean_environment, needs, succeed
from tests.support.programs import PROGRAMS, compiled

pytestmark = [pytest.mark.system, pytest.mark.slow]
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
BLOCK = 1 << 20


def job(words: list[object], folder: Path) -> str:
    """What a command, run where Open MPI may run as root, says on stderr."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**clean_environment(), **ROOT_MAY},
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.decode()


def assert_applied(plan: Plan, report: dict[str, Any], processes: set[str]) -> None:
    """Every thread of these processes, and of no others, ran where planned; their blocks are in place."""
    cpus = {(thread.process, thread.path): list(thread.cpus) for thread in plan.threads}
    found = {(thread["process"], thread["path"]): thread["applied"] for thread in report["threads"]}
    assert found == {key: planned for key, planned in cpus.items() if key[0] in processes}
    blocks = [
        entry
        for entry in report["memory"]
        if entry["region"]["kind"] in ("heap", "mmap") and entry["region"]["bytes"] == BLOCK
    ]
    assert {entry["region"]["process"] for entry in blocks} == processes
    for entry in blocks:
        assert entry["appeared"] and entry["actual"] == entry["planned"] and not entry["misplaced"]
    assert not any("another build" in reason for reason in report["reasons"])


def test_a_job_s_ranks_get_their_parts_of_one_plan(tmp_path: Path) -> None:
    needs("qemu-x86_64", "mpirun.openmpi")
    program = compiled(PROGRAMS / "jobs/mpi_ranks.c", flags=("-O1", "-lpthread"), compiler="mpicc.openmpi")
    mpirun: list[object] = [shutil.which("mpirun.openmpi"), "--oversubscribe", "-n", 2]
    job(
        [BIN / "nprof", "record", "--multiprocess", "--period", 200, "-o", "t.db", *mpirun, program], tmp_path
    )
    succeed("nmap", "plan", "t.db", "--place-all", "-o", "plan.json", cwd=tmp_path)
    plan = Plan.load(tmp_path / "plan.json")
    assert {thread.process for thread in plan.threads} == {"r0", "r1"}
    job([*mpirun, BIN / "nlaunch", "--plan", "plan.json", "--report", "a.%r.json", program], tmp_path)
    for rank in ("r0", "r1"):
        assert_applied(plan, json.loads((tmp_path / f"a.{rank}.json").read_bytes()), {rank})


def test_ranks_of_a_job_go_to_nodes_of_their_own(tmp_path: Path) -> None:
    """The threads of a rank share its block: on a machine of two nodes each rank has one."""
    needs("qemu-x86_64", "mpirun.openmpi")
    program = compiled(PROGRAMS / "jobs/mpi_ranks.c", flags=("-O1", "-lpthread"), compiler="mpicc.openmpi")
    mpirun = [shutil.which("mpirun.openmpi"), "--oversubscribe", "-n", 2]
    # By messages the busy threads of both ranks belong together, on one node, and the others on the other.
    record = [BIN / "nprof", "record", "--multiprocess", "--messages", "no", "--period", 200]
    job([*mpirun, *record, "-o", "t.db", program], tmp_path)
    # Not balanced: how long a rank spins for the other is chance, and counts as its load.
    words = ["--objective", "remote", "--machine", "2x4", "-o", "plan.json"]
    succeed("nmap", "plan", "t.r0.db", "t.r1.db", *words, cwd=tmp_path)
    plan = Plan.load(tmp_path / "plan.json")
    nodes = {thread.process: thread.node for thread in sorted(plan.threads, key=lambda one: one.load)}
    assert set(nodes.values()) == {0, 1}
    for thread in plan.threads:
        assert thread.node == nodes[thread.process] or thread.load < 0.01 * sum(t.load for t in plan.threads)
    for region in plan.memory:
        if region.region.bytes == BLOCK:
            assert {run.node for run in region.runs} == {nodes[region.region.process]}


def test_a_tree_of_forks_is_planned_and_placed(tmp_path: Path) -> None:
    needs("qemu-x86_64")
    program = compiled(PROGRAMS / "jobs/forks.c", flags=("-O1", "-lpthread"))
    succeed("nprof", "record", "--period", "200", "-o", "t.db", str(program), cwd=tmp_path)
    succeed("nmap", "plan", "t.db", "--place-all", "-o", "plan.json", cwd=tmp_path)
    plan = Plan.load(tmp_path / "plan.json")
    processes = {"p0", "p0.1", "p0.1.1", "p0.2"}
    assert {(thread.process, thread.path) for thread in plan.threads} == {
        (process, path) for process in processes for path in ("0", "0.1")
    }
    succeed("nlaunch", "--plan", "plan.json", "--report", "a.json", str(program), cwd=tmp_path)
    assert_applied(plan, json.loads((tmp_path / "a.json").read_bytes()), processes)


def test_a_job_is_reduced_where_it_runs_and_planned_on_hosts(tmp_path: Path) -> None:
    """Each rank leaves its part and nothing else; a plan has the ranks on hosts, with their messages."""
    needs("qemu-x86_64", "mpirun.openmpi")
    program = compiled(PROGRAMS / "jobs/mpi_ranks.c", flags=("-O1", "-lpthread"), compiler="mpicc.openmpi")
    mpirun = [shutil.which("mpirun.openmpi"), "--oversubscribe", "-n", 2]
    record = [BIN / "nprof", "record", "--multiprocess", "--period", 200, "--reduce"]
    said = job([*mpirun, *record, "-o", "job", program], tmp_path)
    assert said.count("parts of 1 rank written to job") == 2
    assert sorted(path.name for path in (tmp_path / "job").iterdir()) == ["rank=0", "rank=1"]
    succeed("nmap", "plan", "job", "--cluster", "2*1x4:1", "-o", "job.json", cwd=tmp_path)
    found = JobPlan.load(tmp_path / "job.json")
    assert found.host_of == {0: "h0", 1: "h1"}
    assert found.predicted.between_hosts == found.predicted.message_bytes > 0
    # All ranks in one recording make the same parts.
    everything = [BIN / "nprof", "record", "--multiprocess", "--period", 200, "--reduce", "-o", "one"]
    assert "parts of 2 ranks written to one" in job([*everything, *mpirun, program], tmp_path)
    succeed("nmap", "plan", "one", "--cluster", "1*2x4:2", "-o", "one.json", cwd=tmp_path)
    (plan,) = JobPlan.load(tmp_path / "one.json").hosts.values()
    assert {thread.process for thread in plan.threads} == {"r0", "r1"} or plan.alone
