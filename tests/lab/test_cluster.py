"""A job on two guests: its accesses, what goes between them, and ranks that are placed as planned."""

import os
import signal
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from numaplan.lab.cluster.hosts import guest_shapes, wanted_hosts
from numaplan.lab.cluster.results import ClusterRun
from numaplan.lab.cluster.session import ClusterRequest, ClusterSession, open_cluster
from numaplan.lab.guest.control import GuestError
from numaplan.lab.guest.health import Patience
from numaplan.lab.guest.kernel import installed_kernel
from numaplan.machine import Machine
from numaplan.mapper import JobPlan
from tests.support.guests import silent
from tests.support.jobs import job_of
from tests.support.mpi import built, launcher
from tests.support.programs import PROGRAMS
from tests.support.waiting import until

pytestmark = [pytest.mark.lab, pytest.mark.slow]
RANKS, FAR, NUMBERS = 4, 2, 1 << 16
MESSAGES = RANKS * NUMBERS * 4  # bytes, all to ranks two away
ORDER = ("h0", "h1", "h0", "h1")


def ran(
    session: ClusterSession, plan: JobPlan | None = None
) -> tuple[ClusterRun, dict[str, list[list[str]]]]:
    """A run and what its ranks said, by the first word of each line."""
    said: dict[str, list[list[str]]] = {"thread": [], "rank": []}
    with tempfile.TemporaryFile() as output:
        run = session.run(plan, -1, output.fileno(), output.fileno())
        output.seek(0)
        text = output.read().decode()
    assert run.exit_code == 0, text
    for line in sorted(text.splitlines()):
        first, *words = line.split() or [""]
        said.get(first, []).append(words)
    return run, said


def ends_with_a_guest(session: ClusterSession) -> None:
    """A job during which the second guest goes."""
    session.request = replace(session.request, argv=["sh", "-c", "echo started; exec sleep 600"])
    with tempfile.NamedTemporaryFile() as output:
        said = Path(output.name)

        def kill() -> None:
            until(lambda: bool(said.read_text()))
            os.kill(session.guests[1].pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(GuestError, match="host h1: the guest stopped"):
            session.run(None, -1, output.fileno())
        killer.join()


def test_a_job_in_rank_order_and_as_planned(lab: Path) -> None:  # noqa: ARG001
    if not installed_kernel().network:
        pytest.skip("the lab's kernel was set up without a network: nlab setup")
    program = str(built(PROGRAMS / "jobs/job_ranks.c", "openmpi"))
    command = [*launcher("openmpi", RANKS), program, str(FAR), str(NUMBERS)]
    hosts = wanted_hosts(2, "2x1", "", None, 2)
    plan = job_of([program], ORDER, Machine.load("2x1"))
    patience = Patience(check_seconds=1, most_missed=90, most_missed_at_boot=60)
    shapes = guest_shapes(hosts, "320M")
    request = ClusterRequest(command, hosts, shapes, timeout=300, patience=patience)
    with open_cluster(request, silent) as session:
        usual, said = ran(session)
        planned, said_as_planned = ran(session, plan)
        ends_with_a_guest(session)
    assert [words[1:] for words in said["rank"]] == [["h0", "2"], ["h0", "3"], ["h1", "0"], ["h1", "1"]]
    assert [words[1] for words in said_as_planned["rank"]] == list(ORDER)
    # Rank order: all goes to the other host; MPI adds a word to each message, and little at the start.
    assert MESSAGES <= usual.between_hosts <= 1.01 * MESSAGES
    assert all(sent >= MESSAGES / 2 for sent in (usual.bytes[0][1], usual.bytes[1][0]))
    assert planned.between_hosts <= usual.between_hosts / 10
    assert 0 < sum(map(sum, usual.launcher_bytes)) < MESSAGES / 10
    # Each rank's threads wrote their blocks; the launcher's accesses, some millions, are not among them.
    for host in [*usual.hosts.values(), *planned.hosts.values()]:
        assert host.local + host.remote > 2 * 3 * (1 << 20) / 8
        assert host.excluded > 1_000_000
    assert planned.applied is not None
    assert list(planned.applied) == ["r0", "r1", "r2", "r3"]
    cpus = {(f"r{rank}", int(tid)): where for rank, tid, where in said_as_planned["thread"]}
    assert len(cpus) == 3 * RANKS
    for rank, report in planned.applied.items():
        assert [thread["planned"] for thread in report["threads"]] == [
            thread["applied"] for thread in report["threads"]
        ]
        seen = sorted(where for (of, _), where in cpus.items() if of == rank)
        assert seen == sorted(str(thread["planned"][0]) for thread in report["threads"])


def test_mpich_starts_ranks_in_order_and_as_planned(lab: Path) -> None:  # noqa: ARG001
    """Of a program without MPI: ranks of MPICH 4.0 that talk by TCP may wait for ever as they end."""
    if not installed_kernel().network:
        pytest.skip("the lab's kernel was set up without a network: nlab setup")
    command = [*launcher("mpich", RANKS), "/bin/sh", "-c", "echo rank $PMI_RANK $(uname -n)"]
    hosts = wanted_hosts(2, "2x1", "", None, 2)
    request = ClusterRequest(command, hosts, guest_shapes(hosts, "320M"), timeout=300)
    with open_cluster(request, silent) as session:
        _, said = ran(session)
        planned, said_as_planned = ran(session, job_of(["/bin/sh"], ORDER, Machine.load("2x1")))
    assert said["rank"] == [["0", "h0"], ["1", "h0"], ["2", "h1"], ["3", "h1"]]
    assert [host for _, host in said_as_planned["rank"]] == list(ORDER)
    assert planned.applied is not None and len(planned.applied) == RANKS
