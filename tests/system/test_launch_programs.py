"""nlaunch with real programs: placement seen from outside, output, exit codes and signals as without us."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanRegion, PlanThread, Predicted, RegionKey, Run
from numaplan.profiler.identity import Identity, prepare, read_identity
from numaplan.profiler.machine import Machine

pytestmark = pytest.mark.system
PROGRAMS = Path(__file__).parent / "programs"
NLAUNCH = Path(sys.executable).parent / "nlaunch"
LARGE = 65536

Build = Callable[..., str]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compile tests/system/programs/launch_NAME.c once with the flags given; gives the program's path."""
    folder = tmp_path_factory.mktemp("programs")

    def compiled(name: str, *flags: str) -> str:
        program = folder / "".join((name, *flags)).replace("=", "-")
        if not program.exists():
            source = PROGRAMS / f"launch_{name}.c"
            always = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"]
            subprocess.run(["gcc", *always, *flags, "-o", program, source, "-lpthread"], check=True)
        return str(program)

    return compiled


def recorded(argv: Sequence[str]) -> Identity:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            argv,
            env=prepare(Path(folder), os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return read_identity(Path(folder))


def plan_for(argv: Sequence[str], machine: Machine | None = None) -> Plan:
    """Threads in turn over the machine's cpus, every large region on its first node, from one recording."""
    machine = machine or Machine.load("local")
    identity = recorded(argv)
    seats = [(node.id, cpu) for node in machine.cpu_nodes for cpu in node.cpus]
    paths = sorted({t.path for t in identity.threads if t.process == "p0"}, key=path_key)
    threads = tuple(
        PlanThread(
            path=path, thread=n, node=seats[n % len(seats)][0], cpus=(seats[n % len(seats)][1],), load=1.0
        )
        for n, path in enumerate(paths)
    )
    memory = tuple(
        PlanRegion(region=key, policy="bind", runs=(Run(offset=0, bytes=key.bytes, node=seats[0][0]),))
        for key in region_keys(identity)
    )
    return Plan(
        app=PlanApp(argv=tuple(argv), build_id=identity.processes[0].build_id, threads=len(threads)),
        machine=PlanMachine.of(machine),
        method="best",
        objective="balanced",
        threads=threads,
        memory=memory,
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )


def path_key(path: str) -> list[int]:
    return [int(part) for part in path.split(".")]


def region_keys(identity: Identity) -> list[RegionKey]:
    return [
        RegionKey(
            kind=r.kind,
            name=r.name,
            bytes=r.bytes,
            build_id=r.build_id,
            process=r.process,
            thread=r.thread_path,
            sequence=r.sequence,
        )
        for r in identity.regions
        if r.kind in ("heap", "mmap", "static") and r.bytes >= LARGE and r.process == "p0"
    ]


def nlaunch(
    plan: Plan, folder: Path, argv: Sequence[str], *options: str, stdin: bytes = b"", **env: str
) -> tuple[subprocess.CompletedProcess[bytes], dict[str, Any]]:
    """Run nlaunch; its result and applied.json."""
    plan.save(folder / "plan.json")
    report = folder / "applied.json"
    command = [NLAUNCH, "--plan", folder / "plan.json", "--report", report, *options, "--", *argv]
    result = subprocess.run(
        command, input=stdin, env={**os.environ, **env}, capture_output=True, timeout=120, check=False
    )
    return result, msgspec.json.decode(report.read_bytes())


def test_every_thread_is_where_the_plan_says_seen_from_outside(tmp_path: Path, build: Build) -> None:
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


def test_report_of_a_run_as_planned(tmp_path: Path, build: Build) -> None:
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
            assert set(region["actual"]) == {node} and region["actual"][node] >= size
    assert re.fullmatch(rb"nlaunch: 2/2 threads, 100 % of [\d.]+ MB as planned\n", result.stderr)


@pytest.mark.parametrize("arguments", [("code", "0"), ("code", "37"), ("signal", "11"), ("signal", "15")])
def test_output_and_exit_code_pass_through(tmp_path: Path, build: Build, arguments: tuple[str, str]) -> None:
    argv = [build("end"), *arguments]
    data = bytes(range(256)) * 500
    alone = subprocess.run(argv, input=data, capture_output=True, check=False)
    result, applied = nlaunch(plan_for(argv), tmp_path, argv, "--quiet", stdin=data)
    expected = alone.returncode if alone.returncode >= 0 else 128 - alone.returncode
    assert (result.returncode, result.stdout, result.stderr) == (expected, alone.stdout, alone.stderr)
    assert applied["exit_code"] == expected


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signals_reach_the_program(tmp_path: Path, build: Build, number: signal.Signals) -> None:
    plan_for([build("end"), "code", "0"]).save(tmp_path / "plan.json")
    command = [NLAUNCH, "--plan", tmp_path / "plan.json", build("end"), "hang"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(number)
        assert child.wait(timeout=20) == 128 + number


def test_a_bound_program_still_sees_all_its_cpus(tmp_path: Path, build: Build) -> None:
    argv = [build("affinity")]
    alone = subprocess.run(argv, capture_output=True, check=True)
    result, applied = nlaunch(plan_for(argv), tmp_path, argv)
    assert result.stdout == alone.stdout
    assert applied["threads"][0]["applied"] == [0]


def test_a_program_that_binds_itself_is_reported(tmp_path: Path, build: Build) -> None:
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


def test_unplanned_and_missing_threads_are_named(tmp_path: Path, build: Build) -> None:
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


def test_ten_thousand_threads_of_which_few_are_planned(tmp_path: Path, build: Build) -> None:
    plan = plan_for([build("many"), "8"])
    result, applied = nlaunch(plan, tmp_path, [build("many"), "10000"])
    assert result.stdout == b"%d 7\n" % (10000 * 9999 // 2)
    assert applied["missing"] == []
    assert all(thread["planned"] == thread["applied"] for thread in applied["threads"])


def test_children_are_not_stuck_on_one_cpu(tmp_path: Path, build: Build) -> None:
    plan = plan_for([build("family")])
    result, _ = nlaunch(plan, tmp_path, [build("family")], "--strict")
    assert result.returncode == 0, result.stderr
    shell = ["sh", "-c", f"{build('affinity')}; nproc"]
    alone = subprocess.run(shell, capture_output=True, check=True)
    result, _ = nlaunch(plan_for(shell), tmp_path, shell)
    assert result.stdout == alone.stdout


def test_another_build_is_noticed(tmp_path: Path, build: Build) -> None:
    plan = plan_for([build("memory")])
    other = build("memory", "-O2", "-DOTHER")
    result, applied = nlaunch(plan, tmp_path, [other], "--strict")
    assert result.returncode == 1
    assert any("another build" in reason for reason in applied["reasons"])


def test_a_static_program_runs_and_the_reason_is_given(tmp_path: Path, build: Build) -> None:
    dynamic, static = build("many"), build("many", "-static")
    result, applied = nlaunch(plan_for([dynamic, "8"]), tmp_path, [static, "8"])
    assert (result.returncode, result.stdout) == (0, b"28 7\n")
    assert applied["ok"] is False and any("static" in reason for reason in applied["reasons"])


def test_plan_for_another_machine_is_refused_or_remapped(tmp_path: Path, build: Build) -> None:
    argv = [build("tree"), "4", "1"]
    plan = plan_for(argv, Machine.load("4x2"))
    plan.save(tmp_path / "plan.json")
    refused = subprocess.run(
        [NLAUNCH, "--plan", tmp_path / "plan.json", *argv], capture_output=True, check=False
    )
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert refused.stderr.count(b"\n") == 1 and b"--remap" in refused.stderr
    result, applied = nlaunch(plan, tmp_path, argv, "--remap", "--strict")
    assert result.returncode == 0, result.stderr
    assert applied["ok"] is True and len(applied["threads"]) == 9


def test_a_race_of_starts(tmp_path: Path, build: Build) -> None:
    argv = [build("tree"), "8", "4"]
    plan = plan_for(argv)
    for _ in range(10):
        result, applied = nlaunch(plan, tmp_path, argv, "--strict")
        assert result.returncode == 0, (result.stderr, applied["reasons"])


def test_blocks_are_found_when_others_come_before_them(tmp_path: Path, build: Build) -> None:
    plan = plan_for([build("shift")])
    result, applied = nlaunch(plan, tmp_path, [build("shift"), "2"])
    assert result.returncode == 0
    blocks = {region["region"]["bytes"]: region["appeared"] for region in applied["memory"]}
    # Until a block stands where the plan has another one, nothing shows that they have moved.
    assert blocks[180000] and blocks[130000]
    assert sum(region["appeared"] for region in applied["memory"]) >= 5


def test_a_program_with_its_own_malloc(tmp_path: Path, build: Build) -> None:
    argv = [build("allocator")]
    plan = plan_for(argv)
    assert [(r.region.kind, r.region.bytes) for r in plan.memory if r.region.kind != "static"] == [
        ("mmap", 8 << 20)
    ]
    result, _ = nlaunch(plan, tmp_path, argv, "--strict")
    assert (result.returncode, result.stdout) == (0, b"%d\n" % (36 << 20)), result.stderr


def test_a_full_disk_costs_the_report_not_the_binding(tmp_path: Path, build: Build) -> None:
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


def test_each_rank_gets_its_part_of_the_plan(tmp_path: Path, build: Build) -> None:
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
        assert {name.partition("/")[0] for name in applied["missing"]} == {f"r{1 - rank}"}


def test_interrupt_from_the_terminal_ends_both(tmp_path: Path, build: Build) -> None:
    plan_for([build("end"), "code", "0"]).save(tmp_path / "plan.json")
    report = tmp_path / "applied.json"
    command = [NLAUNCH, "--plan", tmp_path / "plan.json", "--report", report, build("end"), "hang"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(timeout=20) == 130
    assert msgspec.json.decode(report.read_bytes())["exit_code"] == 130


def test_a_killed_nlaunch_leaves_the_program_running(tmp_path: Path, build: Build) -> None:
    plan_for([build("tree"), "2", "1"]).save(tmp_path / "plan.json")
    command = [NLAUNCH, "--plan", tmp_path / "plan.json", build("tree"), "2", "1"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        pid = int(child.stdout.readline().split()[1])
        child.kill()
        child.wait(timeout=20)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state in "SR"
        child.stdin.close()
        assert child.stdout.read() == b""  # the program ends when its input does, and closes this
