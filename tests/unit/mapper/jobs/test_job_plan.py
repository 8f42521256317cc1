"""The plan of a job as a file: round trips, its layout, and every way it can be wrong."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from numaplan.common import UsageError
from numaplan.machine import Cluster
from numaplan.mapper import (
    JobPlan,
    JobPredicted,
    JobRank,
    Metrics,
    Plan,
    PlanApp,
    PlanMachine,
    PlanThread,
    Predicted,
)


def host_plan(cluster: Cluster, host: str, ranks: list[int]) -> Plan:
    """Two threads of each rank, on the host's first cpus."""
    machine = cluster.by_name[host].machine
    costs = Metrics(remote_comm=0.0, remote_share=0.0, hop_cost=0.0, load_std=0.0)
    threads = [(f"r{rank}", path) for rank in ranks for path in ("0", "0.1")]
    return Plan(
        app=PlanApp(argv=("./app",), threads=len(threads)),
        machine=PlanMachine.of(machine),
        method="best",
        objective="time",
        threads=tuple(
            PlanThread(process=process, path=path, thread=i, node=0, cpus=(0,), load=1.0)
            for i, (process, path) in enumerate(threads)
        ),
        predicted=Predicted(**msgspec.structs.asdict(costs)),
    )


def small_job() -> JobPlan:
    """Four ranks on two hosts, the even ones on the first."""
    cluster = Cluster.load("2*2x2:2")
    return JobPlan(
        ranks=tuple(JobRank(rank=rank, host=f"h{rank % 2}") for rank in range(4)),
        hosts={"h0": host_plan(cluster, "h0", [0, 2]), "h1": host_plan(cluster, "h1", [1, 3])},
        cluster=cluster,
        predicted=JobPredicted(message_bytes=10.0, between_hosts=1.0, baselines={"rank order": 9.0}),
        provenance={"version": "1"},
    )


def test_round_trip_and_layout(tmp_path: Path) -> None:
    job = small_job()
    job.save(tmp_path / "job.json")
    assert JobPlan.load(tmp_path / "job.json") == job
    text = (tmp_path / "job.json").read_bytes()
    assert JobPlan.load(tmp_path / "job.json").to_json() == text
    assert list(msgspec.json.decode(text)) == [
        "schema",
        "ranks",
        "hosts",
        "cluster",
        "predicted",
        "provenance",
    ]
    lines = text.decode().splitlines()
    assert sum('"path"' in line for line in lines) == 8  # one thread a line
    assert sum('"rank"' in line for line in lines) == 4


def test_only_the_plan_of_one_host_is_read() -> None:
    job = JobPlan.from_json(small_job().to_json(), hosts={"h1"})
    assert list(job.hosts) == ["h1"]
    assert job.ranks_on("h0") == (0, 2)
    assert job.host_of[3] == "h1"


def altered(*path: Any, value: Any) -> bytes:
    """The small job's text with one entry replaced (None: left out)."""
    content = msgspec.json.decode(small_job().to_json())
    place = content
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return msgspec.json.encode(content)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "not JSON"),
        (b"{}", "no 'schema'"),
        (b"[" * 5000, "j.json"),
        (altered("schema", value="numaplan/plan/1"), "schema 'numaplan/plan/1'.* 'nlaunch --plan'"),
        (altered("schema", value="numaplan/job/9"), "this version reads numaplan/job/1"),
        (host_plan(Cluster.load("2*2x2:2"), "h0", [0]).to_json(), "schema 'numaplan/plan/1'"),
        (altered("ranks", 1, "rank", value=0), "0 after 0"),
        (altered("ranks", 1, "rank", value=-1), "rank"),
        (altered("ranks", 1, "host", value="h7"), "no plan for host h7"),
        (altered("ranks", 1, "host", value="h0"), "3 ranks on 2 slots"),
        (altered("hosts", "h1", value=None), "no plan for host h1"),
        (altered("hosts", "h1", "threads", 0, "process", value="r2"), "host h1: its plan has r2"),
        (altered("hosts", "h1", "threads", 0, "node", value=9), "hosts: h1: threads"),
        (altered("hosts", "h1", value=7), "h1"),
        (altered("cluster", value=None), "cluster"),
        (altered("cluster", "hosts", 0, "machine", value="4x2"), "for another machine"),
    ],
)
def test_hostile_files_get_one_line(text: bytes, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        JobPlan.from_json(text, "j.json")
    assert caught.value.what.startswith("j.json")
