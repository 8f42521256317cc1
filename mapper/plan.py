"""The plan file: node and cpus of each thread, node of each piece of memory, and what that should cost.

Written to be reviewed: stable key order, a line for each thread and region, no change without cause.
`plan_check.py` holds what must be true of a plan beyond the types.
"""

import os
from typing import Annotated, Any, Literal

import msgspec

from numaplan.common import UsageError, read_document, reviewable_json, write_document
from numaplan.mapper.metrics import Metrics
from numaplan.profiler.machine import Core, Machine, Node

SCHEMA = "numaplan/plan/1"
PLAN_LIMIT = 64 << 20  # bytes; a plan for 100 GB of memory stays under 1 MB

Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Matrix = tuple[tuple[float, ...], ...]
Policy = Literal["bind", "interleave", "preferred", "next-touch"]


class PlanApp(msgspec.Struct, frozen=True, kw_only=True):
    """The program the plan is for: command line, build id of its executable, how many threads were seen."""

    argv: tuple[str, ...] = ()
    build_id: str = ""
    threads: Count = 0


class PlanMachine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The machine the plan is for: a machine.json's content with its fingerprint."""

    schema: str
    fingerprint: str
    name: str = ""
    nodes: tuple[Node, ...]
    distances: Matrix = ()
    cores: tuple[Core, ...] = ()
    latency_ns: Matrix = ()
    bandwidth_mb_s: Matrix = ()

    @staticmethod
    def of(machine: Machine) -> "PlanMachine":
        """The machine as a plan records it."""
        return msgspec.convert({"fingerprint": machine.fingerprint, **machine.to_dict()}, PlanMachine)

    def machine(self) -> Machine:
        """The machine model; raises UsageError when the content is wrong or contradicts the fingerprint."""
        content: dict[str, Any] = msgspec.to_builtins(self)
        content.pop("fingerprint")
        machine = Machine.from_dict(content)
        if machine.fingerprint != self.fingerprint:
            raise UsageError(
                "plan: the machine does not match its fingerprint (edited by hand?)", "make the plan again"
            )
        return machine


class PlanThread(msgspec.Struct, frozen=True, kw_only=True):
    """One thread: creation path, number in the matrix (-1: not in it), node, cpus it may run on, load.

    process: creation path or rank of the process that the thread is in.
    """

    path: str
    thread: Annotated[int, msgspec.Meta(ge=-1)]
    node: Count
    cpus: tuple[Count, ...]
    load: Annotated[float, msgspec.Meta(ge=0)]
    process: str = "p0"


class RegionKey(msgspec.Struct, frozen=True, kw_only=True):
    """What identifies a region from run to run; thread: creation path of the allocating or owning thread."""

    kind: str
    name: str
    bytes: Count
    build_id: str = ""
    process: str = "p0"
    thread: str = ""
    sequence: int = 0


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes [offset, offset + bytes) of a region belong on `node`."""

    offset: Count
    bytes: Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]
    node: Count


class PlanRegion(msgspec.Struct, frozen=True, kw_only=True):
    """One region's policy; runs ascend and do not overlap.

    bind and preferred put each run on its node; interleave spreads the whole span of the runs over all the
    nodes they name (one run a node, of equal parts); next-touch leaves each page to who touches it next.
    """

    region: RegionKey
    policy: Policy
    runs: tuple[Run, ...] = ()


class Today(msgspec.Struct, frozen=True, kw_only=True):
    """Where threads and memory are without the plan, and what that costs.

    threads: `recorded` as the recording saw them, `compact` in order of creation where it does not say; pages
    are where they were touched first. local_share, latency_ns, serving_ns, node_shares: as in Predicted.
    """

    threads: str
    local_share: float = -1.0
    latency_ns: float = -1.0
    node_shares: tuple[float, ...] = ()
    serving_ns: float = -1.0


class Predicted(Metrics, frozen=True, kw_only=True):
    """What the plan should cost, and what compact and scatter would.

    local_share: share of the recorded accesses that the plan makes local, -1 when no accesses were known;
    node_shares: (K,) the same of each node's threads, -1 for nodes without; phase_imbalance: objective
    `phased`: how far a node's load is off its share in the worst phase, beyond what no placement avoids (-1:
    another objective); today: what the plan is to improve on;
    lower_bound: no placement costs less in the plan's objective (-1: not known); latency_ns: mean wait of a
    recorded access (-1: the machine's latencies or the accesses are not known); first_touch_ns: the same for
    the baselines, with pages where they are touched first; serving_ns: mean time an access in which the
    busiest memory hands out its cache lines (-1: the machine's bandwidths or the accesses are not known).
    """

    local_share: float = -1.0
    lower_bound: float = -1.0
    latency_ns: float = -1.0
    first_touch_ns: dict[str, float] = msgspec.field(default_factory=dict)
    baselines: dict[str, Metrics] = msgspec.field(default_factory=dict)
    node_shares: tuple[float, ...] = ()
    phase_imbalance: float = -1.0
    today: Today | None = None
    serving_ns: float = -1.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A placement for one program on one machine (design: plan.json)."""

    schema: str = SCHEMA
    app: PlanApp
    machine: PlanMachine
    method: str
    objective: str
    threads: tuple[PlanThread, ...]
    memory: tuple[PlanRegion, ...] = ()
    predicted: Predicted
    provenance: dict[str, Any] = msgspec.field(default_factory=dict)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Plan":
        """The plan in a file; raises UsageError naming the file and the field that is wrong."""
        return Plan.from_json(read_document(path, "plan", PLAN_LIMIT), os.fspath(path))

    @staticmethod
    def from_json(data: bytes | str, where: str = "plan.json") -> "Plan":
        """The plan in a text; raises UsageError naming `where` and the field that is wrong."""
        from numaplan.mapper.plan_check import check_plan

        try:
            _check_schema(data, where)
            plan = msgspec.json.decode(data, type=Plan)
            check_plan(plan)
        except msgspec.ValidationError as error:
            raise UsageError(f"{where}: {error}", "make the plan again with 'nmap plan'") from error
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"{where}: not JSON: {error}", "give a plan that 'nmap plan' wrote") from error
        except UsageError as error:
            what = error.what if error.what.startswith(where) else f"{where}: {error.what}"
            raise UsageError(what, error.mend) from error
        return plan

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan file (by rename); raises UsageError when it cannot be written."""
        write_document(path, self.to_json())

    def to_json(self) -> bytes:
        """The plan file's text."""
        return reviewable_json(msgspec.to_builtins(self))


class _SchemaOnly(msgspec.Struct):
    schema: str = ""


def _check_schema(data: bytes | str, where: str) -> None:
    found = msgspec.json.decode(data, type=_SchemaOnly).schema
    if found != SCHEMA:
        what = f"schema {found!r}" if found else "no 'schema', so not a plan"
        raise UsageError(f"{where}: {what}", f"this version reads {SCHEMA}")
