"""The plan of a job: the host of each rank, and for each host a plan of its ranks' threads and memory."""

import os
from collections import Counter
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import msgspec

from numaplan.common import BAD_JSON, UsageError, read_document, reviewable_json, schema_of, write_document
from numaplan.machine import Cluster

from ..plan_file.parts import Count
from ..plan_file.plan import Plan

SCHEMA = "numaplan/job/1"
JOB_LIMIT = 1 << 30  # bytes; 16 threads each of 10,000 ranks take some 20 MB


def is_job_plan(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is the plan of a job; whoever reads it then tells what is wrong with it."""
    data = read_document(path, "plan", JOB_LIMIT)
    try:
        return schema_of(data).startswith("numaplan/job/")
    except BAD_JSON:
        return False


class JobRank(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rank and the host that it runs on; argv: its program, where ranks run several."""

    rank: Count
    host: str
    argv: tuple[str, ...] = ()


class JobPredicted(msgspec.Struct, frozen=True, kw_only=True):
    """What a job's plan comes to.

    message_bytes: of all messages between ranks; between_hosts: of those, what goes from host to host (-1:
    nobody saw the messages); hop_bytes: the same, each byte as often as it is sent from switch to switch;
    baselines: `between_hosts` of `rank order` and `round robin`, as launchers place ranks; local_share: share
    of memory accesses that are local, by host (-1: not known).
    """

    message_bytes: float = -1.0
    between_hosts: float = -1.0
    hop_bytes: float = -1.0
    baselines: dict[str, float] = msgspec.field(default_factory=dict)
    local_share: dict[str, float] = msgspec.field(default_factory=dict)


class JobPlan(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A placement of a job's ranks on a cluster's hosts: the content of a job.json.

    ranks: ascending; hosts: the plan of each host that has ranks, in which process `r3` is rank 3 of the job
    (`r3.1` its child); cluster: what it was planned for.
    """

    ranks: tuple[JobRank, ...]
    hosts: Mapping[str, Plan]
    cluster: Cluster
    predicted: JobPredicted = msgspec.field(default_factory=JobPredicted)
    provenance: Mapping[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(self)

    @cached_property
    def host_of(self) -> dict[int, str]:
        """The host of each rank."""
        return {one.rank: one.host for one in self.ranks}

    def ranks_on(self, host: str) -> tuple[int, ...]:
        """The ranks of a host, ascending."""
        return tuple(one.rank for one in self.ranks if one.host == host)

    @staticmethod
    def load(path: str | os.PathLike[str], hosts: Collection[str] | None = None) -> "JobPlan":
        """The plan in a file; raises UsageError naming the file and the field that is wrong.

        hosts: only the plans of these are read (None: of all): a rank need not wait for the others'.
        """
        return JobPlan.from_json(read_document(path, "job.json", JOB_LIMIT), os.fspath(path), hosts)

    @staticmethod
    def from_json(
        data: bytes | str, where: str = "job.json", hosts: Collection[str] | None = None
    ) -> "JobPlan":
        """The plan in a text; as `load`."""
        try:
            schema = schema_of(data)
            if schema != SCHEMA:
                what = f"schema {schema!r}" if schema else "no 'schema', so not a job's plan"
                hint = f"this version reads {SCHEMA}, as 'nmap plan job/' writes it"
                if schema.startswith("numaplan/plan/"):
                    hint = "a program's plan is for 'nlaunch --plan'"
                raise UsageError(f"{where}: {what}", hint)
            found = msgspec.json.decode(data, type=_Document)
        except msgspec.ValidationError as error:
            raise UsageError(f"{where}: {error}", "make it again with 'nmap plan job/'") from error
        except BAD_JSON as error:
            raise UsageError(f"{where}: not JSON: {error}", "give a job.json of 'nmap plan job/'") from error
        wanted = {name: raw for name, raw in found.hosts.items() if hosts is None or name in hosts}
        plans = {name: Plan.from_json(bytes(raw), f"{where}: hosts: {name}") for name, raw in wanted.items()}
        try:
            without = {one.host for one in found.ranks} - set(found.hosts)
            if without:
                raise UsageError(f"no plan for host {min(without)}", "make it again with 'nmap plan job/'")
            return JobPlan(
                ranks=found.ranks,
                hosts=plans,
                cluster=Cluster.from_json(bytes(found.cluster), "cluster"),
                predicted=found.predicted,
                provenance=found.provenance,
            )
        except UsageError as error:
            raise UsageError(f"{where}: {error.what}", error.hint) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file (by rename); raises UsageError when it cannot be written."""
        write_document(path, self.to_json())

    def to_json(self) -> bytes:
        """The file's text: each rank, and each thread of each host's plan, on a line of its own."""
        head = reviewable_json({"schema": SCHEMA, "ranks": msgspec.to_builtins(self.ranks)})
        rest = reviewable_json(
            {
                "cluster": self.cluster.to_dict(),
                "predicted": msgspec.to_builtins(self.predicted),
                "provenance": dict(self.provenance),
            }
        )
        plans = [msgspec.json.encode(name) + b": " + self.hosts[name].to_json()[:-1] for name in self.hosts]
        hosts = b'"hosts": {\n' + b",\n".join(plans) + b"\n}"
        return head.removesuffix(b"\n}\n") + b",\n" + hosts + b",\n" + rest.removeprefix(b"{\n")


class _Document(msgspec.Struct):
    schema: str = ""
    ranks: tuple[JobRank, ...] = ()
    hosts: dict[str, msgspec.Raw] = {}
    cluster: msgspec.Raw = msgspec.Raw(b"{}")
    predicted: JobPredicted = JobPredicted()
    provenance: dict[str, Any] = {}


def _check(job: JobPlan) -> None:
    """Raise UsageError naming the rank or host that cannot be right."""
    again = "make it again with 'nmap plan job/'"
    known = job.cluster.by_name
    last = -1
    for one in job.ranks:
        if one.rank <= last:
            raise UsageError(f"ranks: {one.rank} after {last}", "list each rank once, ascending")
        last = one.rank
        if one.host not in known:
            raise UsageError(f"rank {one.rank}: no host {one.host!r} in the cluster", again)
    for name, count in Counter(one.host for one in job.ranks).items():
        if count > known[name].slots:
            raise UsageError(f"host {name}: {count} ranks on {known[name].slots} slots", again)
    host_of = {f"r{one.rank}": one.host for one in job.ranks}
    for name, plan in job.hosts.items():
        if name not in known:
            raise UsageError(f"hosts: {name!r} is not in the cluster", again)
        if plan.machine.fingerprint != known[name].machine.fingerprint:
            raise UsageError(f"host {name}: its plan is for another machine than the cluster's", again)
        for thread in plan.threads:
            rank = thread.process.partition(".")[0]
            if host_of.get(rank) != name:
                raise UsageError(f"host {name}: its plan has {thread.process}, which is not there", again)
