"""Under nlaunch a program's output, exit code and signals are what they are without it."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from numaplan.machine import Machine
from tests.support.launching import NLAUNCH, build, nlaunch, plan_for
from tests.support.outside import state_of
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system


@pytest.mark.parametrize("arguments", [("code", "0"), ("code", "37"), ("signal", "11"), ("signal", "15")])
def test_output_and_exit_code_pass_through(tmp_path: Path, arguments: tuple[str, str]) -> None:
    argv = [build("end"), *arguments]
    data = bytes(range(256)) * 500
    alone = subprocess.run(argv, input=data, capture_output=True, check=False)
    result, applied = nlaunch(plan_for(argv), tmp_path, argv, "--quiet", stdin=data)
    expected = alone.returncode if alone.returncode >= 0 else 128 - alone.returncode
    assert (result.returncode, result.stdout, result.stderr) == (expected, alone.stdout, alone.stderr)
    assert applied["exit_code"] == expected


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signals_reach_the_program(tmp_path: Path, number: signal.Signals) -> None:
    plan_for([build("end"), "code", "0"]).save(tmp_path / "plan.json")
    command = [NLAUNCH, "--plan", tmp_path / "plan.json", build("end"), "hang"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(number)
        assert child.wait(timeout=PATIENCE_S) == 128 + number


def test_a_bound_program_still_sees_all_its_cpus(tmp_path: Path) -> None:
    argv = [build("affinity")]
    alone = subprocess.run(argv, capture_output=True, check=True)
    result, applied = nlaunch(plan_for(argv), tmp_path, argv)
    assert result.stdout == alone.stdout
    assert applied["threads"][0]["applied"] == [0]


def test_children_are_not_stuck_on_one_cpu(tmp_path: Path) -> None:
    plan = plan_for([build("family")])
    result, _ = nlaunch(plan, tmp_path, [build("family")], "--strict")
    assert result.returncode == 0, result.stderr
    shell = ["sh", "-c", f"{build('affinity')}; nproc"]
    alone = subprocess.run(shell, capture_output=True, check=True)
    result, _ = nlaunch(plan_for(shell), tmp_path, shell)
    assert result.stdout == alone.stdout


def test_nothing_is_bound_in_a_static_program_by_the_library(tmp_path: Path) -> None:
    dynamic, static = build("many"), build("many", "-static")
    result, applied = nlaunch(plan_for([dynamic, "8"]), tmp_path, [static, "8"], "--by", "preload")
    assert (result.returncode, result.stdout) == (0, b"28 7\n")
    assert applied["ok"] is False and any("static" in reason for reason in applied["reasons"])


def test_what_goes_on_in_the_background_is_told(tmp_path: Path) -> None:
    plan_for(["true"]).save(tmp_path / "plan.json")
    script = "exec 3<&0; mkfifo f; { echo up >f; read end <&3; echo $? >ended; } >g 2>&1 & read up <f"
    ours, its = os.pipe(), [NLAUNCH, "--plan", tmp_path / "plan.json"]
    words = [*its, "--report", tmp_path / "applied.json", "bash", "-c", script]
    ends = subprocess.run(words, stdin=ours[0], capture_output=True, cwd=tmp_path, check=True)
    assert b"1 process still runs in the background" in ends.stderr
    reasons = msgspec.json.decode((tmp_path / "applied.json").read_bytes())["reasons"]
    assert sum("still runs" in reason for reason in reasons) == 1
    os.close(ours[1])
    until((tmp_path / "ended").exists)
    os.close(ours[0])
    result = subprocess.run([*its, "bash", "-c", "true & wait"], capture_output=True, check=True)
    assert b"still run" not in result.stderr


def test_descriptors_that_were_open_stay_open(tmp_path: Path) -> None:
    read, write = os.pipe()
    plan_for(["true"]).save(tmp_path / "plan.json")
    command = [NLAUNCH, "-q", "--plan", tmp_path / "plan.json", "bash", "-c", f"echo through >&{write}"]
    subprocess.run(command, pass_fds=[write], check=True)
    os.close(write)
    with os.fdopen(read) as pipe:
        assert pipe.read() == "through\n"


@pytest.mark.slow
def test_a_program_with_its_own_malloc(tmp_path: Path) -> None:
    argv = [build("allocator")]
    plan = plan_for(argv)
    arenas = [(r.region.kind, r.region.bytes) for r in plan.memory if r.region.kind != "static"]
    assert (
        arenas == [("mmap", 8 << 20)] * 2
    )  # the first, which main's small blocks are from, and the thread's
    result, _ = nlaunch(plan, tmp_path, argv, "--strict")
    assert (result.returncode, result.stdout) == (0, b"%d\n" % (36 << 20)), result.stderr


def test_a_full_disk_costs_the_report_not_the_binding(tmp_path: Path) -> None:
    plan = plan_for([build("many"), "8"])
    small = ["bash", "-c", f"ulimit -f 16; exec {build('many')} 8"]
    result, applied = nlaunch(plan, tmp_path, small)
    assert (result.returncode, result.stdout) == (0, b"28 7\n")
    assert applied["ok"] is False


@pytest.mark.parametrize("schedule", ["", "close"])
def test_openmp_teams(tmp_path: Path, schedule: str) -> None:
    source = tmp_path / "team.c"
    source.write_text(
        "#include <omp.h>\n#include <stdio.h>\nint main(void) { int n = 0;\n"
        "for (int i = 0; i < 3; i++)\n#pragma omp parallel num_threads(6) reduction(+ : n)\n"
        " n += omp_get_thread_num();\n"
        'printf("%d %d\\n", n, omp_get_num_procs()); }\n'
    )
    program = tmp_path / "team"
    built = subprocess.run(["gcc", "-fopenmp", "-o", program, source], capture_output=True, check=False)
    if built.returncode:
        pytest.skip("gcc has no OpenMP here")
    alone = subprocess.run([program], capture_output=True, check=True)
    env = {"OMP_PROC_BIND": schedule} if schedule else {}
    result, applied = nlaunch(plan_for([str(program)]), tmp_path, [str(program)], **env)
    assert result.stdout == alone.stdout
    assert len(applied["threads"]) == 6
    if not schedule:
        assert all(thread["planned"] == thread["applied"] for thread in applied["threads"])
    else:
        assert any("OMP_PROC_BIND" in reason for reason in applied["reasons"])


DEBIAN = {
    "pigz": ["pigz", "-p", "8", "-c"],
    "xz": ["xz", "-1", "-T8", "-c"],
    "zstd": ["zstd", "-q", "-T8", "-c"],
}


@pytest.mark.parametrize("name", DEBIAN)
def test_debian_program_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    data = tmp_path / "data"
    data.write_bytes(b"".join(i.to_bytes(4, "little") * (i % 7) for i in range(400_000)))
    argv = [*DEBIAN[name], str(data)]
    alone = subprocess.run(argv, capture_output=True, check=True)
    result, applied = nlaunch(plan_for(argv, Machine.load("4x2")), tmp_path, argv, "--remap")
    assert (result.returncode, result.stdout) == (0, alone.stdout)
    assert all(thread["planned"] == thread["applied"] for thread in applied["threads"] if thread["applied"])


def test_interrupt_from_the_terminal_ends_both(tmp_path: Path) -> None:
    plan_for([build("end"), "code", "0"]).save(tmp_path / "plan.json")
    report = tmp_path / "applied.json"
    command = [NLAUNCH, "--plan", tmp_path / "plan.json", "--report", report, build("end"), "hang"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(timeout=PATIENCE_S) == 130
    assert msgspec.json.decode(report.read_bytes())["exit_code"] == 130


def test_a_killed_nlaunch_leaves_the_program_running(tmp_path: Path) -> None:
    plan_for([build("tree"), "2", "1"]).save(tmp_path / "plan.json")
    command = [NLAUNCH, "--plan", tmp_path / "plan.json", build("tree"), "2", "1"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        pid = int(child.stdout.readline().split()[1])
        child.kill()
        child.wait(timeout=PATIENCE_S)
        until(lambda: state_of(pid) in "SR")
        child.stdin.close()
        assert child.stdout.read() == b""  # the program ends when its input does, and closes this
