"""nlaunch's command line: each misuse one line with its exit code, and --explain."""

from pathlib import Path

import pytest

from numaplan.common.cli import run_app
from numaplan.launcher.cli import ONLINE, OPTIONS, quick_online, quick_request
from numaplan.launcher.cli_full import app
from numaplan.launcher.launch import LaunchRequest
from numaplan.launcher.online.command import OnlineWords
from numaplan.launcher.program import executable_of
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanRegion, PlanThread, Predicted, RegionKey, Run
from numaplan.profiler.machine import Machine


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
    code = run_app(app, "nlaunch", list(words))
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
        "threads not in the plan: on the nodes of their process's planned threads",
        "affinity that the program sets for itself: respected",
    ):
        assert expected in out
    code, out, err = outcome(
        capsys, "--plan", plan, "--remap", "--override", "--unplanned", "inherit", "--explain", "true"
    )
    assert (code, err) == (0, "")
    assert "threads not in the plan: on the cpus of the thread that made them" in out
    assert "affinity that the program sets for itself: undone" in out


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = outcome(capsys, "--help")
    assert code == 0 and "Example: nlaunch --plan plan.json" in out


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


def test_plain_command_lines_need_no_library() -> None:
    assert quick_request(["--plan", "p.json", "app", "--strict"]) == LaunchRequest(
        ["app", "--strict"], "p.json"
    )
    words = ["--plan=p.json", "-q", "--report", "a.json", "--override", "--remap", "--strict", "--", "-x"]
    expected = LaunchRequest(["-x"], "p.json", "a.json", remap=True, strict=True, quiet=True, override=True)
    assert quick_request(words) == expected


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("app",),
        ("--plan",),
        ("--plan", "p.json"),
        ("--plan", "p.json", "--"),
        ("--strict=yes", "--plan", "p.json", "app"),
        ("--help",),
        ("--plan", "p.json", "--watch", "1", "app"),
        ("--online",),
        ("--online=", "app"),
        ("--online", "dino", "--"),
        ("--online", "dino", "--overhead", "0.5", "app"),
        ("--online", "dino", "--attach", "1"),
        ("--set", "T=2", "app"),
    ],
)
def test_other_command_lines_are_left_to_it(words: tuple[str, ...]) -> None:
    assert quick_request(list(words)) is None
    assert quick_online(list(words)) is None


def test_both_readers_know_the_same_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option that is read quickly means the same to the library."""
    seen: list[LaunchRequest] = []

    def keep(request: LaunchRequest) -> int:
        seen.append(request)
        return 0

    monkeypatch.setattr("numaplan.launcher.launch.launch_program", keep)
    for name, (_, meaning) in OPTIONS.items():
        value = ["value"] if meaning is None else []
        words = ["--plan", "p.json", name, *value, "app", "word"]
        assert run_app(app, "nlaunch", words) == 0
        assert seen.pop() == quick_request(words)


def test_plain_lines_with_a_policy_need_no_library() -> None:
    words = ["--online", "dino", "--set", "T=2", "--set=K=16", "-q", "--", "app", "--online"]
    expected = OnlineWords("dino", settings=("T=2", "K=16"), quiet=True)
    assert quick_online(words) == (expected, ["app", "--online"])
    assert quick_request(words) is None


def test_both_readers_know_the_same_options_of_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[OnlineWords, list[str]]] = []

    def keep(words: OnlineWords, argv: list[str]) -> int:
        seen.append((words, argv))
        return 0

    monkeypatch.setattr("numaplan.launcher.cli_full.run_online", keep)
    for name, (_, meaning) in ONLINE.items():
        value = ["value"] if meaning is None else []
        words = ["--online", "dino", name, *value, "app", "word"]
        assert run_app(app, "nlaunch", words) == 0
        assert seen.pop() == quick_online(words)
