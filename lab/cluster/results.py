"""The result of a job on guests: what was counted on each host, and what went between them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from numaplan.mapper import JobPredicted

from ..runs.results import LabRun
from .traffic import Traffic

SCHEMA = "numaplan/lab-cluster/1"


class ClusterRun(msgspec.Struct, kw_only=True):
    """One counted run of a job (`numaplan/lab-cluster/1`).

    hosts: what `nlab run` says of each, by name; bytes: [from][to] in their order, of what the application's
    processes sent each other, launcher_bytes: of what its launcher sent; between_hosts: all of `bytes`;
    local, remote, local_share: over all hosts; seconds: of the first host, which started the launcher; job:
    the plan's file, predicted: what it says of the same numbers, applied: nlaunch's report of each rank.
    """

    schema: str = SCHEMA
    argv: list[str]
    job: str = ""
    hosts: dict[str, LabRun]
    bytes: list[list[int]]
    launcher_bytes: list[list[int]]
    between_hosts: int
    local: int
    remote: int
    local_share: float
    exit_code: int
    timed_out: bool
    failed: bool
    seconds: float
    boot_seconds: float
    predicted: JobPredicted | None = None
    applied: dict[str, dict[str, Any]] | None = None
    gates: list[dict[str, Any]] = []


def cluster_run(
    argv: Sequence[str], runs: Mapping[str, LabRun], traffic: Traffic, boot_seconds: float
) -> ClusterRun:
    """The runs of all hosts (the first started the launcher) and what went between them, summed up."""
    first = next(iter(runs.values()))
    local, remote = (sum(getattr(run, name) for run in runs.values()) for name in ("local", "remote"))
    return ClusterRun(
        argv=list(argv),
        hosts=dict(runs),
        bytes=traffic.application.tolist(),
        launcher_bytes=traffic.launcher.tolist(),
        between_hosts=int(traffic.application.sum()),
        local=local,
        remote=remote,
        local_share=local / (local + remote) if local + remote else 0.0,
        exit_code=first.exit_code,
        timed_out=first.timed_out,
        failed=bool(first.exit_code),
        seconds=first.seconds,
        boot_seconds=boot_seconds,
    )
