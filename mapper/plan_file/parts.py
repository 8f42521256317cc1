"""The parts of a plan: program, machine, threads, memory, and what a placement costs."""

from typing import Annotated, Any, Literal

import msgspec

from numaplan.common import UsageError
from numaplan.machine import Core, Machine, Node
from numaplan.profiler import RegionKey as RegionKey

from .touched import Touched

Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Matrix = tuple[tuple[float, ...], ...]
Policy = Literal["bind", "interleave", "preferred", "next-touch"]


class PlanApp(msgspec.Struct, frozen=True, kw_only=True):
    """The program the plan is for: command line, build id of its executable, how many threads were seen.

    executable: name of the file that the build id is of, or of the link that it was called by; argv need not
    name it (a script, mpirun). Empty: not known.
    """

    argv: tuple[str, ...] = ()
    build_id: str = ""
    threads: Count = 0
    executable: str = ""

    @property
    def name(self) -> str:
        """What the program is called."""
        return self.executable or (self.argv[0].rpartition("/")[2] if self.argv else "")


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

    process: creation path or rank of the process that the thread is in; pool: number of the pool of
    exchangeable threads that it is of; its cpus are all of its node, or of all nodes that the pool has, of
    caches where nodes have several; program: name of what a child process ran, of its first thread; lane:
    number of its seat through time, that it shares with others which live before or after it, of its creator
    and, where cpus are few, of any; unset: it has it alone.
    """

    path: str
    thread: Annotated[int, msgspec.Meta(ge=-1)]
    node: Count
    cpus: tuple[Count, ...]
    load: Annotated[float, msgspec.Meta(ge=0)]
    process: str = "p0"
    pool: Count | msgspec.UnsetType = msgspec.UNSET
    program: str | msgspec.UnsetType = msgspec.UNSET
    lane: Count | msgspec.UnsetType = msgspec.UNSET


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes [offset, offset + bytes) of a region belong on `node`."""

    offset: Count
    bytes: Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]
    node: Count


class Blocks(msgspec.Struct, frozen=True, kw_only=True):
    """The blocks that a rule is for: from `least` to `most` (None: any) bytes; seen: in the recording."""

    least: Count = 0
    most: Count | None = None
    seen: Count = 0

    @property
    def sizes(self) -> str:
        """The sizes in words."""
        from numaplan.analyzer import in_bytes

        if self.most is None:
            return f"every block from {in_bytes(self.least)}" if self.least else "every block"
        if not self.least:
            return f"every block below {in_bytes(self.most + 1)}"
        return f"every block of {in_bytes(self.least)} to {in_bytes(self.most + 1)}"


class Scales(msgspec.Struct, frozen=True, kw_only=True):
    """That the runs of a region are shares of it, whatever its size; known: how that is known.

    `shares`: in the recording each thread uses its part of it, in order; `alike`: all of it is used alike,
    most by threads of one node; `sizes`: two recordings with other sizes of it show the same shares.
    """

    known: Literal["shares", "alike", "sizes"]


class PlanRegion(msgspec.Struct, frozen=True, kw_only=True):
    """One region's policy; runs ascend and do not overlap.

    bind and preferred put each run on its node; interleave spreads the whole span of the runs over all the
    nodes they name (one run a node, of equal parts); next-touch leaves each page to who touches it next.
    blocks: this is a rule for all blocks of these sizes that the thread allocates at the call site, but for
    those that are listed by their sequence; runs are of a block of the region's size, others are cut in
    proportion. share: of the recorded accesses, those to it (unset: not known). scales: the runs are cut in
    proportion to the size that the region has today (unset: what it has beyond its planned size is left to
    first touch); rules and what is interleaved do so anyway. source: what the source calls it, for who reads
    the plan (unset: not known).
    """

    region: RegionKey
    policy: Policy
    runs: tuple[Run, ...] = ()
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] | msgspec.UnsetType = msgspec.UNSET
    blocks: Blocks | msgspec.UnsetType = msgspec.UNSET
    scales: Scales | msgspec.UnsetType = msgspec.UNSET
    source: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def rule(self) -> Blocks | None:
        """What blocks it is a rule for; None: it is one region."""
        return self.blocks if isinstance(self.blocks, Blocks) else None

    def runs_of(self, size: int) -> tuple[Run, ...]:
        """Its runs in memory of this size: what is in proportion is cut to it."""
        if size == self.region.bytes or not (self.rule or self.scales) or not self.region.bytes:
            return self.runs
        edges = [
            (run.offset * size // self.region.bytes, (run.offset + run.bytes) * size // self.region.bytes)
            for run in self.runs
        ]
        return tuple(
            Run(offset=start, bytes=end - start, node=run.node)
            for run, (start, end) in zip(self.runs, edges, strict=True)
            if end > start
        )

    @property
    def title(self) -> str:
        """How it is called where people read."""
        name = self.source or f"{self.region.kind} {self.region.name}"
        return f"{name} by thread {self.region.thread}, {self.rule.sizes}" if self.rule else name


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """What a placement costs; communication in the unit of the matrix, load in that of the load vector.

    remote_comm: communication between threads on different nodes; remote_share: the same over all
    communication (0 when there is none); hop_cost: communication times distance, over all pairs;
    node_loads: (K,) load of each node that has cpus, in the machine's order; load_std: population deviation
    of those sums; load_std_mean: the same of the mean load a thread on each node ([CMLB], Eq. 8-9); cost: ns
    that threads wait, all together (machine/cost.py; -1: not known).
    """

    remote_comm: float
    remote_share: float
    hop_cost: float
    load_std: float
    node_loads: tuple[float, ...] = ()
    load_std_mean: float = 0.0
    cost: float = -1.0


# How threads are known, or taken, to be placed today, and how people are told so.
TODAY = {
    "recorded": "as recorded",
    "compact": "assumed in order of creation",
    "kernel": "assumed dealt to the nodes, then moved",
}


class CurrentPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """Where threads and memory are without the plan, and what that costs.

    threads: `recorded` as the recording saw them, `compact` in order of creation where it does not say,
    `kernel` (objective `time`) dealt to the nodes and then moved about; pages are where they were touched
    first. local_share, memory_share, latency_ns, serving_ns, node_shares, cost: as in Predicted. counted:
    whether the two shares are what was counted as the program was recorded, on this machine.
    """

    threads: str
    local_share: float = -1.0
    latency_ns: float = -1.0
    node_shares: tuple[float, ...] = ()
    serving_ns: float = -1.0
    memory_share: float = -1.0
    cost: float = -1.0
    counted: bool = False


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

    Objective `time`: memory_share: as local_share, of the accesses that reach memory; counted: which ones
    decided where pages go; cost_parts: what for threads wait, in ns; costs: of all placements that were
    tried, and `alone`: the kernel's (the second is the best of the others), `bound in order` and `alone,
    interleaved`: what one could do by hand; candidate_parts: the cost_parts of each of them; doubt: ns by
    which the gain against that may be off.

    small_share: share of the accesses that are to small blocks of the heap, which no plan places (-1: not
    known); small_local: share of these that are local where each is on the node that touches it first.

    cache_share: as remote_share, between last-level caches (-1: each node has one); cache_baselines: the same
    of compact and scatter.

    apart: whether processes were recorded apart: what they exchange is in no figure of communication.

    touched: accesses by who touched their memory first, to judge what an export keeps of the plan; empty: not
    known.
    """

    local_share: float = -1.0
    lower_bound: float = -1.0
    latency_ns: float = -1.0
    first_touch_ns: dict[str, float] = msgspec.field(default_factory=dict)
    baselines: dict[str, Metrics] = msgspec.field(default_factory=dict)
    node_shares: tuple[float, ...] = ()
    phase_imbalance: float = -1.0
    today: CurrentPlacement | None = None
    serving_ns: float = -1.0
    memory_share: float = -1.0
    counted: str = ""
    cost_parts: dict[str, float] = msgspec.field(default_factory=dict)
    costs: dict[str, float] = msgspec.field(default_factory=dict)
    candidate_parts: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    doubt: float = -1.0
    small_share: float = -1.0
    small_local: float = -1.0
    cache_share: float = -1.0
    cache_baselines: dict[str, float] = msgspec.field(default_factory=dict)
    apart: bool = False
    touched: tuple[Touched, ...] = ()


class AtInput(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan comes to with a larger input, beside what would be chosen for that.

    times: as large as the recorded one; bytes: of memory that the program uses then, 0: not known; cost: of
    the plan, in ns for as many accesses as were recorded; alone: of nothing placed; best: what would be
    chosen (named as in the predicted `costs`), best_cost: its cost; best_here: what that costs with the
    recorded input; changes: whether it is worth having instead of the plan.
    """

    times: int
    bytes: int
    cost: float
    alone: float
    best: str
    best_cost: float
    best_here: float
    changes: bool
