"""nlaunch's command line: each misuse one line with its exit code, and --explain."""

import os
from pathlib import Path

import msgspec
import pytest

from numaplan.common.command_line.parser import read_command
from numaplan.launcher import LaunchRequest
from numaplan.launcher.commands.main import LaunchCommand, main
from numaplan.launcher.launch.request import check
from numaplan.machine import Machine, Node
from numaplan.mapper import (
    Plan,
    PlanApp,
    PlanMachine,
    PlanRegion,
    PlanThread,
    Predicted,
    RegionKey,
    Run,
    policy_names,
)
from numaplan.profiler import executable_of
from tests.support.outside import plan_of_threads


def saved_plan(folder: Path, machine: Machine) -> str:
    node = machine.cpu_nodes[0]
    key = RegionKey(kind="heap", name="true+0x10", bytes=4096, thread="0", sequence=1)
    plan = Plan(
        app=PlanApp(threads=2),
        machine=PlanMachine.of(machine),
        method="best",
        objective="remote",
        threads=(
            PlanThread(path="0", thread=0, node=node.id, cpus=node.cpus[:1], load=1.0),
            PlanThread(path="0.1", thread=1, node=node.id, cpus=node.cpus[:2], load=1.0, process="r1"),
        ),
        memory=(PlanRegion(region=key, policy="bind", runs=(Run(offset=0, bytes=4096, node=node.id),)),),
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )
    plan.save(folder / "plan.json")
    return str(folder / "plan.json")


def outcome(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_misuse_is_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    local = saved_plan(tmp_path, Machine.load("local"))
    text = tmp_path / "text"
    text.write_text("not json")
    other = tmp_path / "other.json"
    other.write_text('{"schema": "numaplan/plan/99"}')
    calls = {
        "no such program": ("--plan", local, "/no/such/program"),
        "not executable": ("--plan", local, str(text)),
        "not JSON": ("--plan", str(text), "true"),
        "numaplan/plan/99": ("--plan", str(other), "true"),
        "No such file": ("--plan", str(tmp_path / "gone"), "true"),
        "--unplanned": ("--plan", local, "--unplanned", "sideways", "true"),
        "no folder": ("--plan", local, "--report", str(tmp_path / "no" / "applied.json"), "true"),
        "is a directory": ("--plan", local, "--report", str(tmp_path), "true"),
        "no plan given": ("true",),
        "--plan=x stands behind true": ("true", "--plan=x"),
        "--auto=record stands behind true": ("true", "1", "--auto=record"),
        "no program given": ("--plan", local),
    }
    for expected, words in calls.items():
        code, out, err = outcome(capsys, *words)
        assert (code, out) == (2, ""), words
        assert err.startswith("nlaunch: error: ") and err.count("\n") == 1
        assert expected in err


def test_another_machine_is_named_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = outcome(capsys, "--plan", saved_plan(tmp_path, Machine.load("8x5")), "true")
    assert code == 2
    assert "made for another machine (8x5: 8 nodes of 5 cpus; here:" in err and "--remap" in err


def test_explain_runs_nothing_and_names_equivalents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marker = tmp_path / "ran"
    plan = saved_plan(tmp_path, Machine.load("4x2"))
    code, out, err = outcome(capsys, "--plan", plan, "--remap", "--explain", "touch", str(marker))
    assert (code, err) == (0, "")
    assert not marker.exists()
    for expected in (
        "numactl --cpunodebind=",
        "taskset -c 0",
        "OMP_PLACES='{0}'",
        "  r1/0.1: node",
        "heap true+0x10",
        "threads not in the plan: where their pool is, or where their process's planned threads work",
        "affinity that the program sets for itself: respected",
    ):
        assert expected in out
    code, out, err = outcome(
        capsys, "--plan", plan, "--remap", "--override", "--unplanned", "inherit", "--explain", "true"
    )
    assert (code, err) == (0, "")
    assert "threads not in the plan: on the cpus of the thread that created them" in out
    assert "affinity that the program sets for itself: undone" in out


@pytest.mark.parametrize(("rank", "told"), [("0", True), ("1", False), ("7", True), ("", False)])
def test_a_rank_that_the_plan_does_not_know_is_told(rank: str, told: bool, tmp_path: Path) -> None:
    plan = saved_plan(tmp_path, Machine.load("4x2"))  # of p0 and r1
    environment = {"PMI_RANK": rank, "PMI_SIZE": "8", "PATH": os.environ["PATH"]}
    ours = os.sched_getaffinity(0)
    try:
        warnings = check(LaunchRequest(["true"], plan, remap=True), environment).warnings
    finally:
        os.sched_setaffinity(0, ours)  # of which a rank is freed
    assert len(warnings) == told
    assert all(text.startswith(f"{plan} has nothing for r{rank}, a rank of a job") for text in warnings)


def test_a_fitted_plan_that_leaves_cpus_idle_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four and four threads where nodes have five and three cpus."""
    nodes = [Node(id=0, cpus=(0, 1, 2, 3, 4)), Node(id=1, cpus=(5, 6, 7))]
    here = Machine(nodes=tuple(nodes))
    monkeypatch.setattr("numaplan.launcher.launch.request.machine_named", lambda *_: here)
    names = [("p0", "0"), *(("p0", f"0.{n}") for n in range(1, 8))]
    plan, path = plan_of_threads(names, machine=Machine.load("2x4")), tmp_path / "plan.json"
    plan.save(path)
    assert len({thread.node for thread in plan.threads}) == 2
    assert "with 1 cpu left idle" in check(LaunchRequest(["true"], str(path), remap=True)).warnings[0]


def test_explain_promises_no_region_where_none_can_be_placed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = saved_plan(tmp_path, Machine.load("4x2"))
    words = ("--plan", plan, "--remap", "--explain", "true")
    assert "\nmemory:\n" in outcome(capsys, *words)[1]
    out = outcome(capsys, *words[:-1], "--by", "ptrace", "true")[1]
    assert "\nmemory in the plan, of which no region can be placed from outside:\n" in out


def test_explain_of_a_plan_that_leaves_the_program_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it keeps threads to some cpus, memory is the kernel's on any node."""
    whole = Plan.load(saved_plan(tmp_path, Machine.load("2x2")))
    alone = msgspec.structs.replace(whole, threads=(), memory=(), alone="nothing to gain")
    alone.save(tmp_path / "alone.json")
    words = ("--plan", str(tmp_path / "alone.json"), "--remap", "--explain", "true", "a b")
    expected = "the plan leaves it alone: nothing to gain\nwould run it as it is: true 'a b'\n"
    assert outcome(capsys, *words) == (0, expected, "")
    kept = tuple(msgspec.structs.replace(one, pool=1) for one in whole.threads)
    msgspec.structs.replace(alone, threads=kept).save(tmp_path / "alone.json")
    code, out, _ = outcome(capsys, *words)
    assert code == 0 and "left alone but for its cpus: nothing to gain" in out
    assert "AutoNUMA may move it" in out and "taskset -c " in out
    assert "numactl" not in out and "OMP_PLACES" not in out


def test_help_has_examples_and_every_policy(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = outcome(capsys, "--help")
    assert code == 0 and "Example: nlaunch --plan plan.json" in out
    assert f"{', '.join(policy_names())}; each also with +next-touch" in " ".join(out.split())


def test_the_program_behind_a_script(tmp_path: Path) -> None:
    direct, by_env, odd = tmp_path / "direct", tmp_path / "env", tmp_path / "odd"
    direct.write_text("#!/bin/sh -e\n")
    by_env.write_text("#!/usr/bin/env -S sh\n")
    odd.write_text("#!\n")
    assert executable_of(str(direct)) == "/bin/sh"
    assert executable_of(str(by_env)).endswith("/sh")
    assert executable_of(str(odd)) == str(odd)
    loop = tmp_path / "loop"
    loop.write_text(f"#!{loop}\n")
    assert executable_of(str(loop)) == str(loop)
    assert executable_of("/no/such") == "/no/such"


def test_a_command_line_becomes_a_request() -> None:
    words = [
        "--plan=p.json",
        "-q",
        "--report",
        "a.json",
        "--override",
        "--remap",
        "--strict",
        "--watch",
        "1",
        "--",
        "-x",
        "--plan",
        "y",
    ]
    command = read_command(LaunchCommand, "nlaunch", words)
    expected = LaunchRequest(
        ["-x", "--plan", "y"], "p.json", "a.json", remap=True, strict=True, quiet=True, override=True, watch=1
    )
    assert command.launch_request() == expected


def test_a_policy_with_a_plan_refines_from_the_plan_on() -> None:
    words = ["--online", "dino", "--set", "T=2", "--set=K=16", "-q", "--plan", "p.json", "app", "--online"]
    request = read_command(LaunchCommand, "nlaunch", words).launch_request()
    assert request.argv == ["app", "--online"]
    assert request.online is not None
    assert (request.online.policy, request.online.settings) == ("dino", ("T=2", "K=16"))
    assert request.online.quiet and not request.match


ATTACHED = ("--online", "dino", "--attach", "1")
IDLE = [
    ((*ATTACHED, "--plan", "p.json"), "--plan does nothing with --attach"),
    ((*ATTACHED, "--report", "a.json"), "--report does nothing with --attach"),
    ((*ATTACHED, "--strict"), "--strict does nothing with --attach"),
    (("--online", "dino", "--all-mine", "--match"), "--match does nothing with --all-mine"),
    (("--online", "dino", "--all-mine", "--attach", "1"), "--attach does nothing with --all-mine"),
    (("--online", "dino", "--report", "a.json", "true"), "--report does nothing without a plan"),
    (("--plan", "p.json", "--save", "s.json", "true"), "--save does nothing without a policy"),
    (("--plan", "p.json", "--set", "T=1", "true"), "--set does nothing without a policy"),
    (("--plan", "p.json", "--match-seconds", "1", "true"), "--match-seconds does nothing without --match"),
]


@pytest.mark.parametrize(("words", "said"), IDLE)
def test_an_option_that_would_do_nothing_is_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    code, out, err = outcome(capsys, *words)
    assert (code, out) == (2, "") and said in err


@pytest.mark.parametrize("here", [1, 2])
def test_ranks_on_several_hosts_are_told_that_the_plan_is_for_one(
    here: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = Plan.load(saved_plan(tmp_path, Machine.load("local")))
    ranks = tuple(msgspec.structs.replace(one, process=f"r{n}") for n, one in enumerate(plan.threads))
    msgspec.structs.replace(plan, threads=ranks, memory=()).save(tmp_path / "plan.json")
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("MPI_LOCALNRANKS", str(here))
    assert main(["--plan", str(tmp_path / "plan.json"), "true"]) == 0
    said = capfd.readouterr().err
    assert ("plan.json: is for 2 ranks on one host; 1 runs here, and may share cpus" in said) == (here == 1)
