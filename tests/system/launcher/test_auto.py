"""`nlaunch --auto`: the stored plan is applied; without one the program runs as if nlaunch were not there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from numaplan.mapper import Plan
from tests.support.auto_runs import Store
from tests.support.commands import needs, one_line_error, run, succeed
from tests.support.launching import build, plan_for
from tests.support.programs import PROGRAMS, compiled

pytestmark = pytest.mark.system


@pytest.mark.slow
def test_the_stored_plan_is_applied_and_that_is_noted(store: Store, tmp_path: Path) -> None:
    argv = [build("affinity")]
    plan = plan_for(argv)
    store.put(plan, argv)
    report = tmp_path / "applied.json"
    for _ in range(2):
        result = store.launch("--report", report, *argv)
        assert result.returncode == 0, result.stderr
        applied = json.loads(report.read_bytes())
        assert [thread["applied"] for thread in applied["threads"]] == [list(t.cpus) for t in plan.threads]
    (row,) = json.loads(succeed("nmap", "store", "list", "--json", "--store", store.folder))["plans"]
    assert row["applied"] == 2 and row["state"] == "ok" and row["argv"] == argv
    assert row["last"]["threads"] == [len(plan.threads)] * 2
    shown = succeed("nmap", "store", "show", "--store", store.folder, row["class"]).decode()
    assert row["file"] in shown.replace("\n", "") and "method best" in shown
    assert row["class"] in succeed("nmap", "store", "list", "--store", store.folder).decode()
    succeed("nmap", "store", "drop", "--store", store.folder, row["build"])
    assert not store.files()
    assert [*store.temporary.iterdir()] == []


@pytest.mark.parametrize("arguments", [("code", "0"), ("code", "37"), ("signal", "11"), ("signal", "15")])
def test_without_a_plan_the_program_runs_alone(store: Store, arguments: tuple[str, str]) -> None:
    argv = [build("end"), *arguments]
    data = bytes(range(256)) * 500
    alone = subprocess.run(argv, input=data, capture_output=True, check=False)
    result = store.launch(*argv, stdin=data)
    assert (result.returncode, result.stdout) == (alone.returncode, alone.stdout)
    assert result.stderr.startswith(b"nlaunch: no plan for this run in ")
    assert result.stderr.endswith(alone.stderr) and result.stderr.count(b"nlaunch") == 1
    quiet = store.launch("--quiet", *argv, stdin=data)
    assert (quiet.stdout, quiet.stderr) == (alone.stdout, alone.stderr)
    required = store.launch(*argv, mode="=require")
    assert "no plan for this run" in one_line_error(required, "nlaunch", 1) and not required.stdout


def test_what_would_be_done_without_a_plan_is_told_by_mode(store: Store) -> None:
    words = ("--explain", build("end"), "code", "7")
    bare, recorded, required = (store.launch(*words, mode=mode) for mode in ("", "=record", "=require"))
    assert (bare.returncode, bare.stdout.partition(b": ")[2]) == (0, b"would run without\n")
    assert recorded.returncode == 0 and b": would be recorded, if" in recorded.stdout
    assert "no plan for this run" in one_line_error(required, "nlaunch", 1) and not required.stdout
    store.folder.write_text("no folder")
    hindered = store.launch(*words, mode="=record")
    assert hindered.returncode == 0
    assert hindered.stdout.startswith(f"not recorded: {store.folder}: is not a folder".encode())
    assert hindered.stdout.endswith(b": would run without\n")


def test_the_program_is_this_process_with_its_signals(store: Store) -> None:
    shell = "grep -E '^(SigIgn|SigBlk|SigCgt|Cpus_allowed_list)' /proc/self/status; echo $PPID"
    argv = ["sh", "-c", shell]
    alone = subprocess.run(argv, capture_output=True, check=True)
    assert store.launch(*argv).stdout == alone.stdout


@pytest.mark.parametrize("address", ["/dev/null/plans", "/proc/plans", "no-such-kind://x", "x" * 5000])
def test_a_store_that_cannot_be_is_no_error_of_the_program(store: Store, address: str) -> None:
    for mode, options in (("", []), ("=record", ["--backend", "no-such"])):
        result = store.launch("--store", address, *options, build("end"), "code", "7", mode=mode)
        assert result.returncode == 7
        assert result.stderr.count(b"nlaunch") == 1 and b"runs without" in result.stderr
    assert store.launch("--store", address, build("end"), "code", "0", mode="=require").returncode == 1


def test_a_plan_of_somebody_else_is_not_applied(store: Store) -> None:
    argv = [build("end"), "code", "3"]
    file = store.put(plan_for(argv), argv)
    file.chmod(0o666)
    result = store.launch(*argv)
    assert result.returncode == 3
    assert b"plan skipped" in result.stderr and b"others may write to it" in result.stderr
    if os.geteuid() == 0:
        file.chmod(0o644)
        os.chown(file, 65534, 65534)
        result = store.launch(*argv)
        assert result.returncode == 3 and b"belongs to another user" in result.stderr
    shown = succeed("nmap", "store", "list", "--store", store.folder).decode()
    assert "refused" in shown


def test_a_plan_of_another_build_is_neither_stored_nor_applied(store: Store, tmp_path: Path) -> None:
    argv = [build("end"), "code", "0"]
    plan_for([build("affinity")]).save(tmp_path / "other.json")
    error = one_line_error(
        run("nmap", "store", "put", "--store", store.folder, tmp_path / "other.json", "--", *argv), "nmap", 2
    )
    assert "not the build" in error
    file = store.put(plan_for(argv), argv)
    shutil.copy(tmp_path / "other.json", file)
    result = store.launch(*argv)
    assert result.returncode == 0 and b"another build" in result.stderr


def test_another_class_of_run_takes_the_build_s_plan_and_says_so(store: Store) -> None:
    argv = [build("end"), "code", "0"]
    file = store.put(plan_for(argv), argv, "--class", "night")
    result = store.launch(*argv)
    assert result.returncode == 0 and f"takes {file}".encode() in result.stderr
    assert b"takes" not in store.launch("--class", "night", *argv).stderr


@pytest.mark.slow
def test_thousands_of_plans_of_other_programs(store: Store) -> None:
    argv = [build("affinity")]
    file = store.put(plan_for(argv), argv)
    for number in range(10_000):
        folder = store.folder / f"{number:040x}" / file.parent.name
        folder.mkdir(parents=True)
        os.link(file, folder / file.name)
    result = store.launch("--strict", *argv)
    assert result.returncode == 0, result.stderr


def test_ranks_do_not_store_plans_against_each_other(store: Store, work: str) -> None:
    needs("mpirun.openmpi")
    mpirun = ["mpirun.openmpi", "--oversubscribe", "-n", "2"]
    result = store.launch("--backend", "emulate", work, "0", mode="=record", before=mpirun)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count(b"\n") == 2
    assert result.stderr.count(b"a rank sees only itself") == 1
    store.nothing_left()


@pytest.mark.slow
def test_ranks_find_their_parts_of_a_stored_plan(store: Store, tmp_path: Path) -> None:
    needs("mpirun.openmpi")
    program = compiled(PROGRAMS / "jobs/mpi_ranks.c", flags=("-O1", "-lpthread"), compiler="mpicc.openmpi")
    recorded = plan_for([str(program)])
    threads = [
        msgspec.structs.replace(thread, process=rank) for rank in ("r0", "r1") for thread in recorded.threads
    ]
    app = msgspec.structs.replace(recorded.app, threads=len(threads))
    store.put(msgspec.structs.replace(recorded, app=app, threads=tuple(threads), memory=()), [str(program)])
    mpirun = ["mpirun.openmpi", "--oversubscribe", "-n"]
    result = store.launch("--report", tmp_path / "a.%r.json", program, before=[*mpirun, "2"])
    assert result.returncode == 0 and b"no plan" not in result.stderr, result.stderr
    for rank in ("r0", "r1"):
        applied = json.loads((tmp_path / f"a.{rank}.json").read_bytes())
        found = {(one["process"], one["path"]): one["applied"] for one in applied["threads"]}
        assert found == {(rank, one.path): list(one.cpus) for one in recorded.threads}
    (row,) = json.loads(succeed("nmap", "store", "list", "--json", "--store", store.folder))["plans"]
    assert row["applied"] == 1 and row["class"].startswith("r2-")
    other = store.launch(program, before=[*mpirun, "3"])
    assert other.returncode == 0 and other.stderr.count(b"no plan for this run") == 1


@pytest.mark.slow
def test_a_job_is_recorded_by_its_starter_and_its_ranks_are_placed(store: Store, tmp_path: Path) -> None:
    needs("qemu-x86_64", "mpirun.openmpi")
    program = compiled(PROGRAMS / "jobs/mpi_ranks.c", flags=("-O1", "-lpthread"), compiler="mpicc.openmpi")
    job = ["mpirun.openmpi", "--oversubscribe", "-n", "2", str(program)]
    first = store.record(*job)
    assert first.returncode == 0, first.stderr
    (file,) = store.files()
    plan = Plan.load(file)
    assert plan.alone or {thread.process for thread in plan.threads} == {"r0", "r1"}
    second = store.launch("--report", tmp_path / "a.json", *job)
    assert second.returncode == 0, second.stderr
    applied = json.loads((tmp_path / "a.json").read_bytes())
    assert all(thread["applied"] == thread["planned"] for thread in applied["threads"]), applied["reasons"]
    assert store.files() == [file]


def test_scripts_do_not_get_each_other_s_plans(store: Store, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.py").write_text(f"print('{name}')")
    python = os.path.realpath(sys.executable)
    argv = [python, str(tmp_path / "a.py")]
    store.put(plan_for(argv), argv)
    assert b"no plan" not in store.launch(*argv).stderr
    other = store.launch(python, tmp_path / "b.py")
    assert other.stdout == b"b\n" and b"no plan for this run" in other.stderr


@pytest.mark.slow
def test_what_a_script_starts_is_planned_until_it_is_built_anew(
    store: Store, work: str, tmp_path: Path
) -> None:
    needs("qemu-x86_64")
    program, script = tmp_path / "program", tmp_path / "run.sh"
    shutil.copy(work, program)
    script.write_text(f"#!/bin/sh\nexec {program} 0\n")
    script.chmod(0o755)
    store.record(script)
    assert len(store.files()) == 1
    assert b"no plan" not in store.launch(script).stderr
    shutil.copy(build("affinity"), program)
    assert b"another build" in store.launch(script).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--auto", "--plan", "p.json", "true"], "--plan does nothing with --auto"),
        (["--auto", "--remap", "true"], "--remap does nothing with --auto"),
        (["--auto=often", "true"], "no such choice"),
        (["--store", "x", "--plan", "p.json", "true"], "--store does nothing without --auto"),
        (["--auto", "--backend", "emulate", "true"], "--backend does nothing without --auto=record"),
        (["--auto", "--class", "a/b", "true"], "not a name"),
        (["--auto", "no-such-program"], "no such program"),
        (["--auto"], "no program given"),
    ],
)
def test_misuse(words: list[str], said: str) -> None:
    assert said in one_line_error(run("nlaunch", *words), "nlaunch", 2)


def test_a_program_s_own_word_is_its_own(store: Store) -> None:
    assert store.launch("--quiet", "echo", "--auto", "--auto").stdout == b"--auto --auto\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["drop"], "nothing to drop named"),
        (["drop", "x"], "names no stored plan"),
        (["show"], "missing argument KEY"),
        (["put", "/no/such.json"], "No such file"),
        (["lst"], "did you mean list"),
    ],
)
def test_misuse_of_the_store(store: Store, words: list[str], said: str) -> None:
    command = [*words[:1], *(["--store", str(store.folder)] if words[0] != "lst" else []), *words[1:]]
    assert said in one_line_error(run("nmap", "store", *command), "nmap", 2)
