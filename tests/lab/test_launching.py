"""nlaunch on a booted machine: threads are where the plan says, and --match finds their roles."""

import shlex
import subprocess
from pathlib import Path

import msgspec
import pytest

from numaplan.common import MachineLacksError
from numaplan.profiler.backends.emulate_guest import find_qemu
from numaplan.profiler.machine import Machine
from tests.lab.test_running import nlab
from tests.system.kinds import KINDS, NotHereError
from tests.system.outside import discover, judge, plan_of_threads

pytestmark = pytest.mark.lab
ROUNDS = "2400"
SHOWN = ("static child of a shell", "Go", "libgomp")
PATIENCE_S = 600


def test_threads_are_where_the_plan_says(lab: Path, programs: Path, tmp_path: Path) -> None:
    machine = "2x4"
    lines: list[str] = []
    kinds: list[str] = []
    for kind in SHOWN:
        try:
            built = KINDS[kind](tmp_path)
        except NotHereError:
            continue
        here = discover(built.argv)
        threads = [(thread.process, thread.path) for thread in here.threads]
        name = kind.replace(" ", "-")
        plan_of_threads(threads, machine=Machine.load(machine)).save(tmp_path / f"{name}.json")
        nlaunch = [str(lab / "nlaunch"), "-q", "--plan", f"{name}.json", "--report", f"{name}.applied.json"]
        lines.append(shlex.join([str(programs / "seen"), f"{name}.seen", *nlaunch, *built.argv]))
        kinds.append(name)
    done = nlab(
        lab, "run", "-m", machine, "--", "sh", "-ec", "\n".join(lines), cwd=tmp_path, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    for name in kinds:
        rows = [line.split() for line in (tmp_path / f"{name}.seen").read_text().splitlines()]
        seen = {int(tid): tuple(map(int, cpus.strip(",").split(","))) for tid, cpus in rows}
        applied = msgspec.json.decode((tmp_path / f"{name}.applied.json").read_bytes())
        result = judge(0, "", applied, seen)
        assert result.wrong == ()
        # Go makes threads as it needs them: a run may have few of those that another had.
        assert result.seen >= (2 if name == "Go" else 4), (name, applied["missing"])


def test_roles_are_matched_without_a_trace(lab: Path, programs: Path, tmp_path: Path) -> None:
    """Each thread is first put near the memory of another; by what it is seen to use it finds its own."""
    try:
        find_qemu("x86_64")
    except MachineLacksError as error:
        pytest.skip(f"nothing to record with: {error}")
    claims, trace, plan = programs / "claims", tmp_path / "trace.db", tmp_path / "plan.json"
    for command in (
        ["nprof", "record", "--backend", "emulate", "-o", trace, "--", claims, "4", "3"],
        ["nmap", "plan", trace, "--machine", "4x2", "-o", plan],
    ):
        subprocess.run([lab / command[0], *command[1:]], check=True, capture_output=True, timeout=120)
    words = ["--plan", plan, "--match", "--match-seconds", "1", "--report", tmp_path / "applied.json"]
    done = nlab(
        lab, "run", "-m", "4x2", "--json", "--", lab / "nlaunch", *words, claims, "4", ROUNDS, "512", "1",
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    applied = msgspec.json.decode((tmp_path / "applied.json").read_bytes())
    assert "moved to another role's cpus" in applied["match"], applied["match"]
    assert all(thread["applied"] == thread["planned"] for thread in applied["threads"])
    # Without --match it stays at 0.25: one of the four threads is where its memory is.
    assert msgspec.json.decode(done.stdout)["local_share"] > 0.4
