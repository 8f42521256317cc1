"""What the lab counts is what programs do."""

import json
from pathlib import Path
from statistics import median

import pytest

from numaplan.lab.runs.session import Request, open_session
from tests.support.guests import SharedGuest, guest_program, silent

pytestmark = pytest.mark.lab
SMALL = (8, 2048, 100)  # of the stencil: threads, cells, iterations

ACCESSES = 10_000_000  # so that the 30,000 of a start are less than half a percent
NODES, PER_NODE = 4, 2


def known() -> Path:
    """Linked statically, so that it starts with few accesses of its own."""
    return guest_program("known", "-static")


@pytest.mark.slow
@pytest.mark.parametrize("node", range(NODES))
@pytest.mark.parametrize("home", range(NODES))
def test_known_accesses_are_counted_within_half_a_percent(
    four_nodes: SharedGuest, home: int, node: int
) -> None:
    cpu = home * PER_NODE + (home + node) % PER_NODE
    result = four_nodes.run(known(), cpu, node, ACCESSES)
    assert result["exit_code"] == 0
    assert result["unknown"] == 0
    counted = result["accesses"][cpu][node]
    assert abs(counted / ACCESSES - 1) < 0.005


def test_nothing_else_is_counted(four_nodes: SharedGuest) -> None:
    """A program that does next to nothing has next to no accesses: no kernel, no agent, nothing left over."""
    result = four_nodes.run(known(), 0, 0, 0)
    assert 10_000 < sum(map(sum, result["accesses"])) < 1_000_000


def test_accesses_of_loops_that_only_wait_are_told_apart(four_nodes: SharedGuest) -> None:
    looks, yields, rounds = 50_000, 2_000, 1_000
    plain = four_nodes.run(guest_program("waits"), 0, 0, rounds)
    assert plain["polls"] == 0
    paused = four_nodes.run(guest_program("waits"), looks, 0, rounds)
    assert paused["polls"] == looks - 1  # before the first pause nothing says that it waits
    yielded = four_nodes.run(guest_program("waits"), 0, yields, rounds)
    each = yielded["polls"] / (yields - 1)
    assert each == int(each) and 10 <= each <= 14  # looks, and what the call and its return access
    for run in (paused, yielded):
        more = run["local"] + run["remote"] - plain["local"] - plain["remote"]
        assert 18 * rounds <= plain["local"] + plain["remote"] and abs(more) < rounds


def test_no_names_are_recorded(four_nodes: SharedGuest, tmp_path: Path) -> None:
    """The kernel would change its scheduler for that; QEMU can go on with what stood there, and hang."""
    with (tmp_path / "names").open("w+b") as names:
        result = four_nodes.run("cat", "/sys/kernel/tracing/saved_cmdlines", stdout=names.fileno())
        names.seek(0)
        assert names.read() == b""
    assert result["exit_code"] == 0
    assert [thread["name"] for thread in result["threads"]] == ["cat"]


@pytest.mark.slow
def test_runs_of_a_pinned_program_agree(four_nodes: SharedGuest) -> None:
    command = ["taskset", "-c", 2, guest_program("stencil"), 4, 2048, 100]
    shares = [float(four_nodes.run(*command)["local_share"]) for _ in range(3)]
    assert max(shares) - min(shares) < 0.02 * median(shares) + 0.005


def test_threads_add_up_to_the_whole(four_nodes: SharedGuest) -> None:
    result = four_nodes.run(guest_program("stencil"), *SMALL)
    threads = {thread["path"]: thread for thread in result["threads"]}
    assert set(threads) == {"0"} | {f"0.{k}" for k in range(1, 8)}
    total = sum(sum(thread["accesses"]) for thread in threads.values())
    assert total == result["local"] + result["remote"]
    # The strips that are relaxed three times make their threads' accesses; by the program's own rule.
    assert sum(threads["0.2"]["accesses"]) > 1.5 * sum(threads["0.4"]["accesses"])


def test_interleave_spreads_pages_and_compact_binds_threads(four_nodes: SharedGuest) -> None:
    spread = four_nodes.run(guest_program("stencil"), *SMALL, config="interleave")
    assert spread["traffic_imbalance"] < 1.2
    for config, cpus in (("compact", range(8)), ("scatter", (0, 2, 4, 6, 1, 3, 5, 7))):
        bound = four_nodes.run(guest_program("stencil"), *SMALL, config=config)
        # Each thread that the main thread makes is on its cpu from its first instruction to its last.
        homes = {thread["path"]: set(thread["cpus"]) for thread in bound["threads"]}
        del homes["0"]  # it was born before it was the program
        assert homes == {f"0.{k}": {cpu} for k, cpu in enumerate(cpus) if k}


@pytest.mark.slow
def test_bound_programs_are_told_of_the_cpus_that_they_would_have(four_nodes: SharedGuest) -> None:
    """Runtimes make as many threads as they are told of cpus: bound to one, they would make one."""
    expected, _ = four_nodes.said(guest_program("asks"))
    assert expected.startswith("the program 8 ") and expected.endswith("another program 8 8\n")
    for config, cpu in (("compact", 1), ("scatter", 2)):
        said, result = four_nodes.said(guest_program("asks"), config=config)
        assert said == expected
        homes = {thread["path"]: set(thread["cpus"]) for thread in result["threads"]}
        assert homes["0.1"] == {cpu}
    counted = four_nodes.run(known(), 5, 1, ACCESSES, config="compact")["accesses"][5][1]
    assert abs(counted / ACCESSES - 1) < 0.005


@pytest.mark.slow
def test_bound_programs_may_stop_fork_and_die(four_nodes: SharedGuest) -> None:
    # A task that its tracer holds looks stopped, too: it is told to go on as often as it is found so.
    script = (
        "(kill -STOP $(exec sh -c 'echo $PPID'); echo back) &\n"
        "while [ -e /proc/$! ] && ! grep -q '^State:.Z' /proc/$!/status; do\n"
        "  ! grep -q '^State:.[Tt]' /proc/$!/status || kill -CONT $!\n"
        "done; wait\n"
        "sh -c 'kill -KILL $$'; echo $?\n"
        "for i in 1 2 3 4 5 6; do (grep Cpus_allowed: /proc/self/status & wait) & done; wait; exit 5\n"
    )
    said, result = four_nodes.said("sh", "-c", script, config="compact")
    lines = said.splitlines()
    assert result["exit_code"] == 5
    assert {"back", "137"} <= set(lines)
    masks = [line.split()[1] for line in lines if line.startswith("Cpus_allowed:")]
    assert len(masks) == 6
    assert all(bin(int(mask, 16)).count("1") == 1 for mask in masks)


@pytest.mark.slow
def test_forks_are_part_of_the_program(four_nodes: SharedGuest) -> None:
    child = f"{known()} 1 1 {ACCESSES}"
    result = four_nodes.run("taskset", "-c", 2, "sh", "-c", f"{child} & {child} & wait")
    assert result["exit_code"] == 0
    assert abs(result["accesses"][1][1] / (2 * ACCESSES) - 1) < 0.005
    assert any(str(thread["path"]).startswith("p0.1:") for thread in result["threads"])


@pytest.mark.slow
def test_autonuma_is_switched_off_where_it_is_to_be(four_nodes: SharedGuest) -> None:
    for config, value in (("default", 1), ("no-autonuma", 0), ("default", 1)):
        result = four_nodes.run("grep", "-qx", value, "/proc/sys/kernel/numa_balancing", config=config)
        assert result["exit_code"] == 0


@pytest.mark.slow
def test_pages_that_are_moved_within_their_node_are_none_of_the_migrated(four_nodes: SharedGuest) -> None:
    scatter = "cd /dev/shm && head -c 4M /dev/zero | split -b 4096 -a 3 - page && rm page*[acegikmoqsuwy]"
    compact = "echo 1 > /proc/sys/vm/compact_memory"
    result = four_nodes.run("sh", "-c", f"{scatter} && {compact}", config="no-autonuma")
    assert result["exit_code"] == 0
    assert result["kernel"]["compacted"] > 0
    assert result["migrated"] == 0


def test_autonuma_has_the_pages_of_programs_not_those_of_who_starts_them(four_nodes: SharedGuest) -> None:
    """Those that it marked in one run would move in the next."""
    said, _ = four_nodes.said("sh", "-c", "for p in 1 self; do head -n 1 /proc/$p/numa_maps; done")
    assert [line.split()[1] for line in said.splitlines()] == ["local", "default"]


@pytest.mark.slow
def test_distances_and_memory_are_the_machines(
    lab: Path,  # noqa: ARG001
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Sparse ids, a node without cpus, one without memory, unequal distances."""
    nodes = [
        {"id": 0, "cpus": [0, 2], "memory_bytes": 1 << 30},
        {"id": 2, "cpus": [1, 3, 5], "memory_bytes": 1 << 30},
        {"id": 4, "cpus": [], "memory_bytes": 1 << 30},
        {"id": 7, "cpus": [9], "memory_bytes": 0},
    ]
    distances = [[10, 15, 20, 25], [15, 10, 20, 25], [20, 20, 10, 30], [25, 25, 30, 10]]
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps({"schema": "numaplan/machine/1", "nodes": nodes, "distances": distances}))
    show = "cd /sys/devices/system/node; for n in 0 1 2 3; do cat node$n/cpulist node$n/distance; done"
    with open_session(Request(["/bin/true"], str(machine), memory="600M"), silent) as session:
        said, _ = SharedGuest(session).said("sh", "-c", show)
    assert said.splitlines() == [
        "0,2",
        "10 15 25 20",
        "1,3-4",
        "15 10 25 20",
        "5",
        "25 25 10 30",
        "",
        "20 20 30 10",
    ]
    assert "in the lab node 2 is 1" in capsys.readouterr().err
