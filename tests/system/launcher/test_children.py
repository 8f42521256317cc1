"""Programs that a planned program starts and into which nothing can be loaded."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanRegion, RegionKey, Run
from tests.support.launching import build, nlaunch
from tests.support.outside import plan_of_threads
from tests.support.programs import PROGRAMS

pytestmark = pytest.mark.system
PYTHON = "/usr/bin/python3"


def plan_of(process: str) -> Plan:
    """Main thread of the first process, and ten threads of this one."""
    threads = {("p0", "0"), (process, "0"), *((process, f"0.{number}") for number in range(1, 10))}
    return plan_of_threads(sorted(threads))


STARTS = {
    "fork": (["sh", "-c", "{0} 8; exit 0"], "p0.1"),
    "exec": (["sh", "-c", "exec {0} 8"], "p0"),
    "a pipe": (["sh", "-c", "true | {0} 8; exit 0"], "p0.2"),
    "a script": (["{1}"], "p0"),
    "env": (["env", "-i", "A=1", "{0}", "8"], "p0"),
    "vfork": (
        [PYTHON, "-c", "import subprocess; subprocess.run(['{0}', '8'], close_fds=False, cwd='/')"],
        "p0.1",
    ),
    "posix_spawn": (
        [PYTHON, "-c", "import os; os.waitpid(os.posix_spawn('{0}', ['a', '8'], dict()), 0)"],
        "p0.1",
    ),
}


@pytest.mark.parametrize("way", STARTS)
def test_static_child_is_bound_from_outside(tmp_path: Path, way: str) -> None:
    words, process = STARTS[way]
    if words[0] == PYTHON and not Path(PYTHON).exists():
        pytest.skip(f"no {PYTHON} here")
    program, script = build("many", "-static"), tmp_path / "script"
    script.write_text(f"#!/bin/bash\nexec {program} 8\n")
    script.chmod(0o755)
    argv = [word.format(program, script) for word in words]
    result, applied = nlaunch(plan_of(process), tmp_path, argv)
    assert (result.returncode, result.stdout) == (0, b"28 7\n")
    assert applied["missing"] == [] and applied["unplanned"] == [], result.stderr
    assert all(thread["applied"] == thread["planned"] for thread in applied["threads"])


@pytest.mark.parametrize("static", [False, True])
def test_a_child_that_the_plan_does_not_know_has_all_cpus(tmp_path: Path, static: bool) -> None:
    program = build("affinity", "-static") if static else build("affinity")
    argv = ["sh", "-c", f"{program}; exit 0"]
    alone = subprocess.run(argv, capture_output=True, check=True)
    result, _ = nlaunch(plan_of_threads([("p0", "0")]), tmp_path, argv)
    assert result.stdout == alone.stdout


@pytest.mark.parametrize(("words", "code"), [("code 37", 37), ("signal 11", 128 + signal.SIGSEGV)])
def test_its_end_and_streams_are_its_own(tmp_path: Path, words: str, code: int) -> None:
    data = bytes(range(256)) * 500
    argv = ["sh", "-c", f"{build('end', '-static')} {words}; exit $?"]
    alone = subprocess.run(argv, input=data, capture_output=True, check=False)
    result, _ = nlaunch(plan_of("p0.1"), tmp_path, argv, "-q", stdin=data)
    assert (result.returncode, result.stdout, result.stderr) == (code, alone.stdout, alone.stderr)


def test_its_parent_has_one_child_and_hears_of_one_end(tmp_path: Path) -> None:
    script = (
        "import os, signal; ends = []; signal.signal(signal.SIGCHLD, lambda *_: ends.append(1))\n"
        f"pid = os.posix_spawn('{build('many', '-static')}', ['many', '8'], dict(os.environ))\n"
        "assert os.wait()[0] == pid\n"
        "try: os.wait()\nexcept ChildProcessError: print('alone', len(ends))\n"
    )
    result, _ = nlaunch(plan_of("p0.1"), tmp_path, ["python3", "-c", script])
    assert result.stdout == b"28 7\nalone 1\n"


@pytest.mark.slow
def test_under_a_debugger_nothing_comes_between(tmp_path: Path) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    argv = ["gdb", "-q", "-batch", "-ex", "break main", "-ex", "run", "-ex", "next", build("many", "-static")]
    result, _ = nlaunch(plan_of("p0.1"), tmp_path, argv, "-q")
    assert b"Breakpoint 1, " in result.stdout, result.stdout + result.stderr


def test_a_child_of_another_c_library_runs_as_without_us(tmp_path: Path) -> None:
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is not installed")
    program = tmp_path / "many"
    source = PROGRAMS / "launcher/many.c"
    subprocess.run(["musl-gcc", "-std=c11", "-o", program, source], check=True)
    argv = ["sh", "-c", f"{program} 8; exit $?"]
    result, applied = nlaunch(plan_of("p0.1"), tmp_path, argv, "--strict")
    assert (result.returncode, result.stdout) == (0, b"28 7\n"), result.stderr
    assert len(applied["threads"]) == 11
    own = os.environ.get("LD_PRELOAD", "")
    shown, _ = nlaunch(plan_of("p0.1"), tmp_path, ["sh", "-c", f"{program} 8; printenv LD_PRELOAD"], "-q")
    assert shown.stdout.splitlines()[1].decode().endswith(f"enforce.so{own and ':'}{own}")


def test_memory_that_is_left_to_first_touch_is_said(tmp_path: Path) -> None:
    plan = plan_of("p0.1")
    key = RegionKey(kind="heap", name="many+0x10", bytes=1 << 20, process="p0.1", thread="0", sequence=1)
    node = Machine.load("local").nodes[0].id
    region = PlanRegion(region=key, policy="bind", runs=(Run(offset=0, bytes=key.bytes, node=node),))
    plan = msgspec.structs.replace(plan, memory=(region,))
    _, applied = nlaunch(plan, tmp_path, ["sh", "-c", f"{build('many', '-static')} 8; exit 0"])
    assert any("p0.1" in reason and "first touch" in reason for reason in applied["reasons"])


CPUS = "import os; print(sorted(os.sched_getaffinity(0)))"
MASK = "print([line for line in open('/proc/self/status') if line.startswith('Cpus_allowed_list')])"
ESCAPES = {
    "env": ["env", "-i", PYTHON, "-c", MASK],
    "shell": ["sh", "-c", f'unset LD_PRELOAD; exec {PYTHON} -c "{MASK}"'],
    "spawn": [PYTHON, "-c", "import os, sys; os.posix_spawn(sys.argv[1], sys.argv[1:], {}); os.wait()"],
    "vfork": [
        PYTHON,
        "-c",
        "import subprocess, sys; subprocess.run(sys.argv[1:], env={}, cwd='/', close_fds=False)",
    ],
    "another user": ["setpriv", "--reuid=65534", "--clear-groups", PYTHON, "-c", MASK],
}


@pytest.mark.skipif(not Path(PYTHON).exists(), reason=f"no {PYTHON} here")
@pytest.mark.parametrize("way", ESCAPES)
def test_a_program_that_leaves_the_library_behind_has_all_cpus(tmp_path: Path, way: str) -> None:
    argv = [*ESCAPES[way], *([PYTHON, "-c", MASK] if way in ("spawn", "vfork") else [])]
    if way == "another user" and (os.geteuid() != 0 or not shutil.which("setpriv")):
        pytest.skip("needs root and setpriv, to be somebody else")
    alone = subprocess.run(argv, capture_output=True, check=True)
    result, _ = nlaunch(plan_of_threads([("p0", "0"), ("p0.1", "0")]), tmp_path, argv)
    assert (result.stdout, result.returncode) == (alone.stdout, 0)


@pytest.mark.skipif(not Path(PYTHON).exists(), reason=f"no {PYTHON} here")
@pytest.mark.parametrize("words", [["env"], ["sh", "-c", 'exec "$@"', "sh"]])
def test_what_takes_a_planned_programs_place_is_bound_and_sees_all_cpus(
    tmp_path: Path, words: list[str]
) -> None:
    """Runtimes make as many threads as they see cpus."""
    argv = [*words, PYTHON, "-c", f"{CPUS}; {MASK}"]
    alone = subprocess.run(argv, capture_output=True, check=True)
    plan = plan_of_threads([("p0", "0")])
    result, applied = nlaunch(plan, tmp_path, argv)
    seen, mask = result.stdout.splitlines()
    assert seen == alone.stdout.splitlines()[0]
    assert f"\\t{plan.threads[0].cpus[0]}\\n".encode() in mask and applied["missing"] == []


@pytest.mark.skipif(not Path(PYTHON).exists(), reason=f"no {PYTHON} here")
def test_who_failed_to_exec_is_bound_as_before(tmp_path: Path) -> None:
    program = f"""
import os
for environment in (os.environ, {{}}):
    try:
        os.execve("/no/such/program", ["x"], environment)
    except FileNotFoundError:
        {MASK}
"""
    plan = plan_of_threads([("p0", "0")])
    result, _ = nlaunch(plan, tmp_path, [PYTHON, "-c", program])
    assert result.stdout.count(f"\\t{plan.threads[0].cpus[0]}\\n".encode()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("-static",)])
def test_the_kernel_leaves_pages_of_planned_processes_where_they_are(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """By a policy that says what happens anyway: AutoNUMA moves only what has none."""
    program = build("policy", *flags)
    alone = subprocess.run([program], capture_output=True, check=False)
    if alone.returncode or not alone.stdout.startswith(b"0 "):
        pytest.skip("memory policies are not permitted here, or there is one already")
    ways = {"p0": [program], "p0.1": ["sh", "-c", f"{program}; exit 0"]}
    for process, argv in ways.items():
        result, _ = nlaunch(plan_of_threads([(process, "0")]), tmp_path, argv)
        assert result.stdout == b"4 0\n", result.stderr
    others = [ways["p0.1"], ["env", "-i", program]]
    for argv in others if not flags else others[:1]:
        result, _ = nlaunch(plan_of_threads([("p0", "0")]), tmp_path, argv)
        assert result.stdout == b"0 0\n", result.stderr
    for process, argv in ways.items():
        result, _ = nlaunch(plan_of_threads([(process, "0")]), tmp_path, argv, "--autonuma")
        assert result.stdout == b"0 0\n", result.stderr
