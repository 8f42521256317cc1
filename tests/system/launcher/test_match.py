"""--match: threads that took their work in another order are moved to the cpus of what they do."""

import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from numaplan.machine import Machine
from numaplan.mapper import Plan
from tests.support.commands import needs, run
from tests.support.launching import NLAUNCH, build
from tests.support.outside import children, comm, state_of
from tests.support.programs import EXAMPLES, compiled
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system
ORDER = [(place * 3 + 1) % 8 for place in range(8)]  # of programs/launcher/roles.c, turned by 1


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with trace.db and plan.json of the program's run in the order of creation."""
    needs("qemu-x86_64")
    if len(Machine.load("local").cpus) < 2:
        pytest.skip("needs two cpus")
    folder = tmp_path_factory.mktemp("recorded")
    done = run("nprof", "record", "--backend", "emulate", "-o", "trace.db", build("roles"), cwd=folder)
    if done.returncode == 3:
        pytest.skip(done.stderr.decode())
    assert done.returncode == 0, done.stderr
    done = run("nmap", "plan", "trace.db", "--place-all", "-o", "plan.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    plan = Plan.load(folder / "plan.json")
    cpus = Machine.load("local").cpus
    threads = tuple(
        msgspec.structs.replace(
            thread,
            cpus=(cpus[thread.thread % 2],),
            node=Machine.load("local").node_of_cpu[cpus[thread.thread % 2]],
        )
        for thread in plan.threads
    )
    msgspec.structs.replace(plan, threads=threads).save(folder / "plan.json")
    return folder


def names_and_cpus(pid: int) -> dict[str, str]:
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        allowed = (task / "status").read_text().partition("Cpus_allowed_list:")[2].split()[0]
        found[(task / "comm").read_text().strip()] = allowed
    return found


@pytest.mark.slow
@pytest.mark.parametrize("turn", ["0", "1"])
def test_roles_find_their_cpus(recorded: Path, turn: str) -> None:
    plan = Plan.load(recorded / "plan.json")
    seats = {thread.path: str(thread.cpus[0]) for thread in plan.threads}
    report = recorded / f"applied{turn}.json"
    match = ["--match-trace", recorded / "trace.db", "--match-seconds", "2"]
    command = [NLAUNCH, "--plan", recorded / "plan.json", "--report", report, "--strict", *match]
    with subprocess.Popen(
        [*command, build("roles"), turn, "seen whole"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as launcher:
        assert launcher.stdin is not None and launcher.stdout is not None
        pid = int(launcher.stdout.readline().split()[1])
        assert pid in children(launcher.pid)
        until(lambda: state_of(launcher.pid) == "T")
        launcher.send_signal(signal.SIGCONT)
        wanted = {f"role {role}": seats[f"0.{role + 1}"] for role in range(8)}
        until(lambda: not any(comm(pid) == "perf" for pid in children(launcher.pid)))  # it has been matched
        found = names_and_cpus(pid)
        launcher.stdin.close()
        words = launcher.stderr.read() if launcher.stderr else b""
        assert launcher.wait(timeout=PATIENCE_S) == 0, words
    assert {name: found[name] for name in wanted} == wanted
    applied = msgspec.json.decode(report.read_bytes())
    assert applied["ok"] is True
    if turn == "1":
        assert "moved to another role's cpus" in applied["match"]
        by_path = {thread["path"]: thread["applied"] for thread in applied["threads"]}
        for place, role in enumerate(ORDER):
            assert by_path[f"0.{place + 1}"] == [int(seats[f"0.{role + 1}"])]


def test_roles_are_told_by_planned_memory(recorded: Path, tmp_path: Path) -> None:
    plan = Plan.load(recorded / "plan.json")
    msgspec.structs.replace(plan, memory=()).save(tmp_path / "plan.json")
    words = ("--plan", "plan.json", "--match", "--report", "applied.json")
    done = run("nlaunch", *words, build("roles"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = msgspec.json.decode((tmp_path / "applied.json").read_bytes())["match"]
    assert "places no memory" in said and "--place-all" in said


def test_without_it_an_unstable_identity_is_warned_of(recorded: Path, tmp_path: Path) -> None:
    plan = Plan.load(recorded / "plan.json")
    unstable = {**plan.provenance, "identity": {"stable": False, "correlation": 0.2, "matched": 0.9}}
    msgspec.structs.replace(plan, provenance=unstable).save(tmp_path / "plan.json")
    done = run("nlaunch", "--plan", "plan.json", build("roles"), cwd=tmp_path)
    assert done.returncode == 0 and b"--match" in done.stderr


def test_a_trace_that_is_not_there(recorded: Path) -> None:
    done = run("nlaunch", "--plan", "plan.json", "--match-trace", "gone.db", build("roles"), cwd=recorded)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1


def test_the_example_s_sum_does_not_depend_on_who_takes_which_part() -> None:
    claims = compiled(EXAMPLES / "claims.c")
    sums = {
        subprocess.run(
            [claims, "4", "3", "64", turn], capture_output=True, check=True, timeout=PATIENCE_S
        ).stdout
        for turn in ("0", "1", "7")
    }
    assert len(sums) == 1 and sums.pop().strip().isdigit()
