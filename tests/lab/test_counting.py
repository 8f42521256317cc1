"""What the lab counts is what programs do."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from numaplan.launcher.lab.session import Request, Session, open_session

pytestmark = pytest.mark.lab

ACCESSES = 40_000_000
NODES, PER_NODE = 4, 2


def silent(_text: str) -> None:
    pass


@pytest.fixture(scope="module")
def session(lab: Path, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:  # noqa: ARG001
    """One boot for this file, of a shell that runs the command in a file: what it holds can be changed."""
    script = tmp_path_factory.mktemp("job") / "job"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    with open_session(Request([str(script)], "4x2", by_thread=True), silent) as opened:
        yield opened


def run(session: Session, *command: object, config: str = "default", stdout: int = -1) -> dict[str, object]:
    """Run a command in the session's guest; its result as `nlab run --json` prints it."""
    import msgspec

    script = Path(session.request.argv[0])
    script.write_text(f"#!/bin/sh\nexec {' '.join(str(word) for word in command)}\n")
    content: dict[str, object] = msgspec.to_builtins(session.run(config, stdout=stdout))
    return content


@pytest.mark.parametrize("node", range(NODES))
@pytest.mark.parametrize("home", range(NODES))
def test_known_accesses_are_counted_within_half_a_percent(
    session: Session, programs: Path, home: int, node: int
) -> None:
    cpu = home * PER_NODE + (home + node) % PER_NODE
    result = run(session, programs / "known", cpu, node, ACCESSES)
    assert result["exit_code"] == 0
    assert result["unknown"] == 0
    counted = result["accesses"][cpu][node]  # type: ignore[index]
    assert abs(counted / ACCESSES - 1) < 0.005


def test_nothing_else_is_counted(session: Session, programs: Path) -> None:
    """A program that does next to nothing has next to no accesses: no kernel, no agent, nothing left over."""
    result = run(session, programs / "known", 0, 0, 0)
    assert 10_000 < sum(map(sum, result["accesses"])) < 1_000_000  # type: ignore[call-overload]


def test_no_names_are_recorded(session: Session, tmp_path: Path) -> None:
    """The kernel would change its scheduler for that; QEMU can go on with what stood there, and hang."""
    with (tmp_path / "names").open("w+b") as names:
        result = run(session, "cat /sys/kernel/tracing/saved_cmdlines", stdout=names.fileno())
        names.seek(0)
        assert names.read() == b""
    assert result["exit_code"] == 0
    assert [thread["name"] for thread in result["threads"]] == ["cat"]  # type: ignore[attr-defined]


def test_runs_of_a_pinned_program_agree(session: Session, programs: Path) -> None:
    command = f"taskset -c 2 {programs / 'stencil'} 4 2048 100"
    shares = [float(run(session, command)["local_share"]) for _ in range(3)]  # type: ignore[arg-type]
    assert max(shares) - min(shares) < 0.02 * median(shares) + 0.005


def test_threads_add_up_to_the_whole(session: Session, programs: Path) -> None:
    result = run(session, programs / "stencil")
    threads = {thread["path"]: thread for thread in result["threads"]}  # type: ignore[attr-defined]
    assert set(threads) == {"0"} | {f"0.{k}" for k in range(1, 8)}
    total = sum(sum(thread["accesses"]) for thread in threads.values())
    assert total == result["local"] + result["remote"]  # type: ignore[operator]
    # The strips that are relaxed three times make their threads' accesses; by the program's own rule.
    assert sum(threads["0.2"]["accesses"]) > 1.5 * sum(threads["0.4"]["accesses"])


def test_interleave_spreads_pages_and_compact_binds_threads(session: Session, programs: Path) -> None:
    spread = run(session, programs / "stencil", config="interleave")
    assert spread["traffic_imbalance"] < 1.2  # type: ignore[operator]
    for config, cpus in (("compact", range(8)), ("scatter", (0, 2, 4, 6, 1, 3, 5, 7))):
        bound = run(session, programs / "stencil", config=config)
        # Each thread that the main thread makes is on its cpu from its first instruction to its last.
        homes = {thread["path"]: set(thread["cpus"]) for thread in bound["threads"]}  # type: ignore[attr-defined]
        del homes["0"]  # it was born before it was the program
        assert homes == {f"0.{k}": {cpu} for k, cpu in enumerate(cpus) if k}


def test_bound_programs_may_stop_fork_and_die(session: Session) -> None:
    inner = Path(session.request.argv[0]).with_name("inner")
    inner.write_text(
        "(kill -STOP $(exec sh -c 'echo $PPID'); echo back) &\n"
        "while ! grep -q '^State:.[Tt]' /proc/$!/status; do :; done; kill -CONT $!; wait\n"
        "sh -c 'kill -KILL $$'; echo $?\n"
        "for i in 1 2 3 4 5 6; do (taskset -p $(exec sh -c 'echo $PPID') & wait) & done; wait; exit 5\n"
    )
    with tempfile.TemporaryFile() as output:
        result = run(session, "sh", inner, config="compact", stdout=output.fileno())
        output.seek(0)
        lines = output.read().decode().splitlines()
    assert result["exit_code"] == 5
    assert {"back", "137"} <= set(lines)
    masks = [line.rpartition(" ")[2] for line in lines if "affinity" in line]
    assert len(masks) == 6
    assert all(bin(int(mask, 16)).count("1") == 1 for mask in masks)


def test_forks_are_part_of_the_program(session: Session, programs: Path) -> None:
    child = f"{programs / 'known'} 1 1 {ACCESSES // 10}"
    result = run(session, f"sh -c '{child} & {child} & wait'")
    assert result["exit_code"] == 0
    assert abs(result["accesses"][1][1] / (ACCESSES // 5) - 1) < 0.02  # type: ignore[index]
    assert any(str(thread["path"]).startswith("p0.1:") for thread in result["threads"])  # type: ignore[attr-defined]


def test_autonuma_is_switched_off_where_it_is_to_be(session: Session) -> None:
    for config, value in (("default", 1), ("no-autonuma", 0), ("default", 1)):
        result = run(session, f"grep -qx {value} /proc/sys/kernel/numa_balancing", config=config)
        assert result["exit_code"] == 0


def test_distances_and_memory_are_the_machines(lab: Path, tmp_path: Path) -> None:
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
    done = subprocess.run(
        [lab / "nlab", "run", "--machine", machine, "--", "sh", "-c", show],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=dict(os.environ),
    )
    assert done.stdout.splitlines() == [
        "0,2",
        "10 15 25 20",
        "1,3-4",
        "15 10 25 20",
        "5",
        "25 25 10 30",
        "",
        "20 20 30 10",
    ]
    assert "in the lab node" in done.stderr
