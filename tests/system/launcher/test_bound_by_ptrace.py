"""Programs into which nothing can be loaded: bound from outside, and never left stopped."""

import os
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from numaplan.launcher.enforce.program import preload_obstacle
from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanRegion, RegionKey, Run
from numaplan.profiler import elf_facts
from tests.support.launching import NLAUNCH, build, nlaunch, plan_for, privileged
from tests.support.outside import Processes, children, plan_of_threads, run_seconds, state_of
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system


def threads_of(name: str, *arguments: str) -> Plan:
    """A plan for the threads that the program, linked dynamically, was recorded with."""
    identity = plan_for([build(name), *arguments])
    return plan_of_threads([(thread.process, thread.path) for thread in identity.threads])


def tracers_of(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("TracerPid:")[2].split()[0])


@pytest.mark.parametrize("by", ["auto", "ptrace"])
def test_identities_are_those_of_the_preload_library(tmp_path: Path, by: str) -> None:
    program = build("tree", "-static") if by == "auto" else build("tree")
    plan = threads_of("tree", "5", "13")
    result, applied = nlaunch(plan, tmp_path, [program, "5", "13"], "--strict", "--by", by)
    assert result.returncode == 0, (result.stderr, applied["reasons"])
    assert len(applied["threads"]) == 71 and applied["unplanned"] == []


@pytest.mark.parametrize("by", ["preload", "ptrace"])
def test_of_two_plans_the_inner_one_holds(tmp_path: Path, by: str) -> None:
    """The outer's library is not in the program then, which would give each thread its cpus back."""
    program, inner = [build("many"), "4"], tmp_path / "inner"
    inner.mkdir()
    plan = plan_for(program)
    plan.save(inner / "plan.json")
    words = [NLAUNCH, "--plan", inner / "plan.json", "--report", inner / "applied.json", "--by", by]
    result, _ = nlaunch(plan, tmp_path, [*map(str, words), "--strict", "--", *program])
    applied = msgspec.json.decode((inner / "applied.json").read_bytes())
    assert result.returncode == 0, applied["reasons"]
    assert [thread["applied"] for thread in applied["threads"]] == [list(one.cpus) for one in plan.threads]


def test_of_two_plans_the_inner_one_yields_to_the_program(tmp_path: Path) -> None:
    plan_of_threads([("p0", "0")]).save(tmp_path / "plan.json")
    words = [NLAUNCH, "-q", "--plan", tmp_path / "plan.json"]
    by = [*words, "--override", *words, "--by", "ptrace", "env"]
    told = subprocess.run(by, capture_output=True, check=True).stdout
    assert b"enforce.so" not in told and b"NUMAPLAN_PLAN" not in told
    told = subprocess.run([*words, "--override", *words, "env"], capture_output=True, check=True).stdout
    assert b"NUMAPLAN_OVERRIDE" not in told and told.count(b"enforce.so") == 1


def test_children_have_their_names(tmp_path: Path) -> None:
    plan = plan_of_threads([("p0", "0"), ("p0", "0.1"), ("p0.1", "0")])
    inside, by_library = nlaunch(plan, tmp_path, [build("family")])
    outside, by_tracer = nlaunch(plan, tmp_path, [build("family", "-static")])
    assert inside.stdout == outside.stdout

    def seen(applied: dict[str, object]) -> list[tuple[object, object]]:
        threads: list[dict[str, object]] = applied["threads"]  # type: ignore[assignment]
        return [(thread.get("process", "p0"), thread["path"]) for thread in threads if thread["applied"]]

    assert seen(by_library) == seen(by_tracer) != []


@pytest.mark.parametrize("arguments", [("code", "37"), ("signal", "11"), ("signal", "15")])
def test_output_and_exit_code_pass_through(tmp_path: Path, arguments: tuple[str, str]) -> None:
    argv = [build("end", "-static"), *arguments]
    data = bytes(range(256)) * 500
    alone = subprocess.run(argv, input=data, capture_output=True, check=False)
    result, _ = nlaunch(plan_of_threads([("p0", "0")]), tmp_path, argv, "--quiet", stdin=data)
    expected = alone.returncode if alone.returncode >= 0 else 128 - alone.returncode
    assert (result.returncode, result.stdout, result.stderr) == (expected, alone.stdout, alone.stderr)


def test_a_bound_program_still_counts_all_its_cpus(tmp_path: Path) -> None:
    argv = [build("affinity", "-static")]
    alone = subprocess.run(argv, capture_output=True, check=True)
    result, applied = nlaunch(plan_of_threads([("p0", "0")]), tmp_path, argv)
    assert result.stdout == alone.stdout
    assert applied["threads"][0]["applied"] == [Machine.load("local").cpus[0]]


@pytest.mark.slow
def test_ten_thousand_threads_come_and_go(tmp_path: Path) -> None:
    plan = threads_of("many", "8")
    result, applied = nlaunch(plan, tmp_path, [build("many", "-static"), "10000"])
    assert result.stdout == b"%d 7\n" % (10000 * 9999 // 2)
    assert applied["missing"] == []
    assert all(thread["planned"] == thread["applied"] for thread in applied["threads"])


@pytest.mark.parametrize("override", [False, True])
def test_own_affinity_is_respected_or_not(tmp_path: Path, override: bool) -> None:
    cpus = Machine.load("local").cpus
    if len(cpus) < 2:
        pytest.skip("needs two cpus")
    argv = [build("affinity"), str(cpus[1])]
    plan = plan_of_threads([("p0", "0")])
    result, applied = nlaunch(plan, tmp_path, argv, "--override" if override else "--respect-app")
    assert applied["threads"][0]["applied"] == [cpus[0] if override else cpus[1]]
    assert applied["ok"] is override and result.returncode == 0


@pytest.mark.parametrize("static", [False, True])
def test_a_program_learns_what_it_set_itself(tmp_path: Path, static: bool) -> None:
    cpus = Machine.load("local").cpus
    if len(cpus) < 2:
        pytest.skip("needs two cpus")
    argv = [build("affinity", *["-static"] * static), str(cpus[1])]
    alone = subprocess.run(argv, capture_output=True, check=True)
    result, applied = nlaunch(plan_of_threads([("p0", "0")]), tmp_path, argv, "--by", "ptrace")
    assert result.stdout == alone.stdout == b"1 1\n"
    assert applied["threads"][0]["applied"] == [cpus[1]]


@pytest.mark.parametrize("by", ["preload", "ptrace"])
def test_who_asks_for_all_cpus_goes_back_to_those_of_the_plan(tmp_path: Path, by: str) -> None:
    cpus = Machine.load("local").cpus
    if len(cpus) < 2:
        pytest.skip("needs two cpus")
    argv = [build("affinity"), *map(str, reversed(cpus))]
    alone = subprocess.run(argv, capture_output=True, check=True)
    result, applied = nlaunch(plan_of_threads([("p0", "0")]), tmp_path, argv, "--by", by)
    assert result.stdout == alone.stdout
    assert applied["ok"] and applied["threads"][0]["applied"] == [cpus[0]]


class Living:
    """A program with 9 threads, of which two are planned, that lives until its input ends."""

    def __init__(self, folder: Path, program: str, *options: str) -> None:
        plan_of_threads([("p0", "0"), ("p0", "0.1")]).save(folder / "plan.json")
        self.launcher = subprocess.Popen(
            [NLAUNCH, "--plan", folder / "plan.json", *options, program, "4", "1"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        assert self.launcher.stdout is not None
        self.pid = int(self.launcher.stdout.readline().split()[1])
        self.tracer = tracers_of(self.pid)
        self.processes = Processes([self.pid, *[self.tracer] * (self.tracer > 0)])

    def __enter__(self) -> "Living":
        return self

    def __exit__(self, *_: object) -> None:
        self.processes.kill(*self.processes.living())
        self.processes.close()
        self.launcher.kill()
        self.launcher.wait(timeout=PATIENCE_S)
        for stream in (self.launcher.stdin, self.launcher.stdout, self.launcher.stderr):
            assert stream is not None
            stream.close()


@pytest.mark.parametrize("victim", ["launcher", "tracer"])
def test_who_is_killed_leaves_the_program_running(tmp_path: Path, victim: str) -> None:
    with Living(tmp_path, build("tree", "-static")) as living:
        assert living.tracer > 0
        os.kill(living.tracer if victim == "tracer" else living.launcher.pid, signal.SIGKILL)
        if victim == "tracer":
            until(lambda: tracers_of(living.pid) == 0)
        else:
            living.launcher.wait(timeout=PATIENCE_S)
        until(lambda: state_of(living.pid) in "SR")
        assert living.launcher.stdin is not None
        living.launcher.stdin.close()
        until(lambda: not living.processes.living())


def runs(pid: int, program: str) -> bool:
    """Whether a process has become the program."""
    try:
        return str(Path(f"/proc/{pid}/exe").readlink()) == program
    except OSError:
        return False


def far_enough(launcher: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Whether what it started has had the processor for so long, or it has ended before."""
    return run_seconds(*children(launcher.pid)) > seconds or launcher.poll() is not None


@pytest.mark.slow
def test_a_start_that_is_killed_at_any_time_leaves_nothing_stopped(tmp_path: Path) -> None:
    """The tracer dies while threads are being made: none may stay in its birth stop."""
    program = build("many", "-static")
    plan_of_threads([("p0", "0")]).save(tmp_path / "plan.json")
    for turn in range(8):
        command = [NLAUNCH, "-q", "--plan", tmp_path / "plan.json", program, "20000"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
        ) as launcher:
            until(lambda: any(runs(pid, program) for pid in children(launcher.pid)))
            until(far_enough, launcher, 0.04 * turn)
            family = Processes(children(launcher.pid))
            family.kill(*family.living("trace.elf"))
            family.close()
            output, _ = launcher.communicate(timeout=PATIENCE_S)
        assert output == b"%d 7\n" % (20000 * 19999 // 2)


def test_the_program_stops_and_goes_on_as_without_us(tmp_path: Path) -> None:
    with Living(tmp_path, build("tree", "-static")) as living:
        os.kill(living.pid, signal.SIGSTOP)
        until(lambda: state_of(living.pid) in "tT")
        os.kill(living.pid, signal.SIGCONT)
        until(lambda: state_of(living.pid) in "SR")
        assert living.launcher.stdin is not None
        living.launcher.stdin.close()
        assert living.launcher.wait(timeout=PATIENCE_S) == 0


@pytest.mark.parametrize("static", [False, True])
def test_a_thread_that_strays_for_a_while_is_noticed(tmp_path: Path, static: bool) -> None:
    cpus = Machine.load("local").cpus
    if len(cpus) < 2:
        pytest.skip("needs two cpus")
    program = build("tree", "-static") if static else build("tree")
    report = tmp_path / "applied.json"
    with Living(tmp_path, program, "--watch", "0.1", "--strict", "--report", str(report)) as living:
        os.sched_setaffinity(living.pid, {cpus[1]})
        assert living.launcher.stderr is not None
        assert any(b"elsewhere: 0" in line for line in living.launcher.stderr)  # until the watch says so
        os.sched_setaffinity(living.pid, {cpus[0]})
        assert living.launcher.stdin is not None
        living.launcher.stdin.close()
        assert living.launcher.wait(timeout=PATIENCE_S) == 1
    applied = msgspec.json.decode(report.read_bytes())
    assert applied["ok"] is False and applied["threads"][0]["applied"] == [cpus[0]]
    assert any("thread 0 was not on its cpus" in reason for reason in applied["reasons"])


def test_a_program_with_privileges_of_another(tmp_path: Path) -> None:
    program = privileged(build("tree"), tmp_path)
    plan = threads_of("tree", "3", "2")
    tmp_path.parent.chmod(0o755)
    result, applied = nlaunch(plan, tmp_path, [str(program), "3", "2"], "--strict")
    assert result.returncode == 0, (result.stderr, applied["reasons"])
    assert len(applied["threads"]) == 10


def test_what_is_said_of_a_program() -> None:
    dynamic, static = elf_facts(build("tree")), elf_facts(build("tree", "-static"))
    assert dynamic is not None and static is not None
    assert dynamic.interpreter.startswith("/") and len(dynamic.build_id) == 40
    assert preload_obstacle(build("tree"), dynamic) == ""
    assert preload_obstacle(build("tree", "-static"), static) == "it is statically linked"
    assert elf_facts(__file__) is None and elf_facts("/no/such") is None


@pytest.mark.parametrize("by_a_shell", [False, True])
def test_memory_is_placed_by_the_policy_of_the_process(tmp_path: Path, by_a_shell: bool) -> None:
    program = build("policy", "-static")
    if subprocess.run([program], stdout=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("memory policies are not permitted here")
    (node,) = {node.id for node in Machine.load("local").cpu_nodes[:1]}
    key = RegionKey(kind="mmap", name="policy+0x10", bytes=1 << 20)
    spread = PlanRegion(region=key, policy="interleave", runs=(Run(offset=0, bytes=1 << 20, node=node),))
    plan = msgspec.structs.replace(plan_of_threads([("p0", "0")]), memory=(spread,))
    argv = ["sh", "-c", f"exec {program}"] if by_a_shell else [program]
    result, applied = nlaunch(plan, tmp_path, argv)
    assert result.stdout.split() == [b"1", b"%x" % (1 << node)]  # preferred: there is one node only
    assert any(f"put on node {node} as a whole" in reason for reason in applied["reasons"])
    assert applied["threads"][0]["applied"] == applied["threads"][0]["planned"]


def test_memory_is_left_and_said_so(tmp_path: Path) -> None:
    plan = plan_for([build("memory")])
    app = msgspec.structs.replace(plan.app, build_id="")
    plan = msgspec.structs.replace(plan, app=app)
    _, applied = nlaunch(plan, tmp_path, [build("memory", "-static")])
    assert any("left to first touch" in reason for reason in applied["reasons"])
