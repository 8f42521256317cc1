"""Threads and commands that never live at the same time are planned as no rivals for a cpu."""

from collections import defaultdict
from pathlib import Path

import pytest

from numaplan.mapper import Plan
from tests.support.commands import run, succeed
from tests.support.emulating import MARKS, record
from tests.support.programs import PROGRAMS, compiled

pytestmark = [*MARKS, pytest.mark.slow]
COMMANDS, ROUNDS, WORKERS = 12, 3, 6


def planned(trace: Path, machine: str) -> tuple[Plan, str]:
    """The plan of a recording, as good as today's best, and what is said of it."""
    output = trace.with_suffix(".json")
    done = run("nmap", "plan", trace, "--machine", machine, "--objective", "remote", "-o", output)
    assert done.returncode == 0, done.stderr
    succeed("nmap", "check", trace, "--baseline", output, "--max-regress", "0", "--strict")
    succeed("nmap", "show", output)
    return Plan.load(output), done.stderr.decode()


def test_commands_of_a_script_have_a_cpu_together(tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text(f"for i in $(seq {COMMANDS}); do ls >/dev/null; done\n")
    plan, said = planned(record(Path("/bin/sh"), tmp_path / "t.db", str(script)), "2x2")
    commands = {thread.cpus for thread in plan.threads if "." in thread.process}
    assert " share " not in said
    assert len(plan.threads) > COMMANDS and len(commands) == 1 and len(next(iter(commands))) == 1
    done = run("nlaunch", "--plan", tmp_path / "t.json", "--remap", "--", "sh", script)
    assert done.returncode == 0, done.stderr
    assert f"{len(plan.threads)}/{len(plan.threads)} threads".encode() in done.stderr, done.stderr


def test_teams_of_one_maker_after_another_work_on_their_parts_where_those_before_did(tmp_path: Path) -> None:
    program = compiled(PROGRAMS / "mapper/teams.c")
    plan, said = planned(record(program, tmp_path / "t.db", ""), "2x4")
    assert " share " not in said
    cpus = defaultdict(set)
    for thread in plan.threads:
        maker, _, worker = thread.path.removeprefix("0.").partition(".")
        if worker:
            cpus[(int(worker) + int(maker)) % WORKERS].add(thread.cpus)
    assert len(plan.threads) == 1 + ROUNDS * (WORKERS + 1) and len(cpus) == WORKERS
    assert all(len(own) == 1 for own in cpus.values()) and len(set.union(*cpus.values())) == WORKERS
    assert f"{WORKERS} threads share 4 cpus" in planned(tmp_path / "t.db", "2x2")[1]
