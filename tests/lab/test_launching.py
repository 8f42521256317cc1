"""nlaunch on a booted machine: threads are where the plan says, and --match finds their roles."""

import sys
from pathlib import Path

import msgspec
import pytest

from numaplan.lab.guest.guest import Guest
from numaplan.machine import Machine
from tests.support.commands import needs, succeed
from tests.support.guests import SharedGuest, guest_program, said_uncounted
from tests.support.outside import discover, judge, plan_of_threads
from tests.support.programs import PROGRAMS
from tests.support.runtimes import KINDS, NotHereError

pytestmark = [pytest.mark.lab, pytest.mark.slow]
ROUNDS = "600"  # after it was moved
SHOWN = ("static child of a shell", "Go", "libgomp")
PATIENCE_S = 600
LAUNCH_EACH = (sys.executable, str(PROGRAMS / "lab/launch_each.py"))


def test_threads_are_where_the_plan_says(uncounted: Guest, tmp_path: Path) -> None:
    starts: list[str] = []
    kinds: list[str] = []
    for kind in SHOWN:
        try:
            built = KINDS[kind]()
        except NotHereError:
            continue
        threads = [(thread.process, thread.path) for thread in discover(built).threads]
        plan, report = (tmp_path / f"{kind}.{part}.json" for part in ("plan", "applied"))
        plan_of_threads(threads, machine=uncounted.shape.machine).save(plan)
        starts += [*["--"] * bool(starts), str(plan), str(report), "float", *built.argv]
        kinds.append(kind)
    seen, told = tmp_path / "seen", tmp_path / "told"
    told.mkdir()
    command = [str(guest_program("seen")), str(seen), *LAUNCH_EACH, *starts]
    said_uncounted(uncounted, command, {"LIVE_UNTIL": str(told)})
    rows = [line.split() for line in seen.read_text().splitlines()]
    found = {int(tid): tuple(map(int, cpus.strip(",").split(","))) for tid, cpus in rows}
    for kind in kinds:
        applied = msgspec.json.decode((tmp_path / f"{kind}.applied.json").read_bytes())
        result = judge(0, "", applied, found)
        assert result.wrong == ()
        # Go makes threads as it needs them: a run may have few of those that another had.
        assert result.seen >= (2 if kind == "Go" else 4), (kind, applied["missing"])


def test_what_is_made_beyond_the_plan_is_of_the_makers_pool_or_of_that_it_made(
    four_nodes: SharedGuest, tmp_path: Path
) -> None:
    """The first and its pool of one work on two nodes; one that it made later idles on another, or is not."""
    plan = plan_of_threads([("p0", "0"), ("p0", "0.1"), ("p0", "0.9")], machine=Machine.load("4x2"))
    main, pool, idle = plan.threads
    pool = msgspec.structs.replace(pool, node=1, cpus=(2, 3), pool=1)
    idle = msgspec.structs.replace(idle, node=2, cpus=(4, 5), load=0.0, pool=2)
    msgspec.structs.replace(plan, threads=(main, pool, idle)).save(tmp_path / "idle")
    msgspec.structs.replace(plan, threads=(main, pool)).save(tmp_path / "pool")
    every = tuple(range(8))
    expected = {
        ("idle", "float"): ((2, 3), (0, 1, 2, 3)),
        ("pool", "float"): ((2, 3), (2, 3)),
        ("pool", "anywhere"): (every, every),
    }
    starts: list[object] = []
    for last, where in expected:
        starts += [*["--"] * bool(starts), tmp_path / last, tmp_path / f"{last}-{where}", where]
        starts += [guest_program("grows"), 3]
    said, result = four_nodes.said(*LAUNCH_EACH, *starts)
    assert result["exit_code"] == 0, said
    for (last, where), (grown, other) in expected.items():
        applied = msgspec.json.decode((tmp_path / f"{last}-{where}").read_bytes())
        found = {thread["path"]: tuple(thread["applied"]) for thread in applied["unplanned"]}
        assert found == {"0.1.1": grown, "0.1.1.1": grown, "0.2": other}


def test_roles_are_matched_without_a_trace(four_nodes: SharedGuest, lab: Path, tmp_path: Path) -> None:
    """Each thread is first put near the memory of another; by what it is seen to use it finds its own."""
    needs("qemu-x86_64")
    claims, trace, plan = guest_program("claims_until_moved"), tmp_path / "trace.db", tmp_path / "plan.json"
    succeed("nprof", "record", "--backend", "emulate", "-o", trace, "--", claims, "4", "512", "0", "0")
    succeed("nmap", "plan", trace, "--machine", "4x2", "--place-all", "-o", plan)
    words = ["--plan", plan, "--match", "--match-seconds", "1", "--report", tmp_path / "applied.json"]
    result = four_nodes.run(lab / "nlaunch", *words, claims, "4", "512", "1", ROUNDS, timeout=PATIENCE_S)
    assert result["exit_code"] == 0
    applied = msgspec.json.decode((tmp_path / "applied.json").read_bytes())
    assert "moved to another role's cpus" in applied["match"], applied["match"]
    assert all(thread["applied"] == thread["planned"] for thread in applied["threads"])
    # Without --match it stays at 0.25: one of the four threads is where its memory is. How much more it is
    # depends on when in the run they were matched.
    assert result["local_share"] > 0.3
