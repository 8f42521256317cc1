"""The options of a plan, and which part of the machine they leave."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from numaplan.common import UsageError
from numaplan.machine import Machine

from ..plan_file.plan import Plan
from ..threads.problem import TOLERANCE

SMT_CHOICES = ("share", "avoid")


class PlanOptions(msgspec.Struct, frozen=True):
    """How to plan; objective: empty: `time` of a trace, `balanced` of a matrix; nodes: only these (empty:
    all); smt: `avoid` leaves one hwthread a core; without_cpus: reserved for others; pins: node, or `cpu:N`,
    by thread's path or process:path; next_touch: leave memory whose users change between phases to who
    touches it next; place_all: place memory that is as good where it is touched first, too."""

    method: str = "best"
    objective: str = ""
    effort: str = "normal"
    seed: int = 0
    tolerance: float = TOLERANCE
    nodes: tuple[int, ...] = ()
    smt: str = "share"
    without_cpus: tuple[int, ...] = ()
    pins: Mapping[str, str] = msgspec.field(default_factory=dict)
    next_touch: bool = False
    place_all: bool = False

    def recorded(self) -> dict[str, Any]:
        """What a plan's provenance says of the options, beyond method and objective."""
        kept: dict[str, Any] = {"effort": self.effort, "seed": self.seed, "tolerance": self.tolerance}
        if self.nodes:
            kept["nodes"] = list(self.nodes)
        if self.smt != "share":
            kept["smt"] = self.smt
        if self.without_cpus:
            kept["without_cpus"] = list(self.without_cpus)
        if self.pins:
            kept["pins"] = dict(self.pins)
        if self.next_touch:
            kept["next_touch"] = True
        if self.place_all:
            kept["place_all"] = True
        return kept

    def usable(self, machine: Machine) -> Machine:
        """The machine with the cpus that these options leave."""
        return restrict(machine, self.nodes, self.smt, self.without_cpus)


class _Recorded(msgspec.Struct):
    """The options in a plan's provenance that today's best is found under, too."""

    tolerance: float = TOLERANCE
    nodes: tuple[int, ...] = ()
    smt: str = "share"
    without_cpus: tuple[int, ...] = ()
    pins: dict[str, str] = msgspec.field(default_factory=dict)
    next_touch: bool = False
    place_all: bool = False


def options_of(plan: Plan, effort: str, seed: int, name: str) -> PlanOptions:
    """The options that a plan was made with, but for effort and seed; raises UsageError if they cannot be."""
    try:
        recorded = msgspec.convert(plan.provenance.get("options", {}), _Recorded)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: provenance: options: {error}", "make the plan again") from error
    return PlanOptions(objective=plan.objective, effort=effort, seed=seed, **msgspec.structs.asdict(recorded))


def restrict(
    machine: Machine, nodes: Sequence[int] = (), smt: str = "share", without: Sequence[int] = ()
) -> Machine:
    """The machine with cpus only on `nodes` (empty: all), none of `without`, one a core where smt is `avoid`.

    Raises UsageError for a node that is not there or has no cpus, a cpu that is not there, another word for
    smt, or when there is no cpu, or none is left.
    """
    if not machine.cpu_nodes:
        raise UsageError("the machine has no node with cpus", "give another --machine")
    if smt not in SMT_CHOICES:
        raise UsageError(f"--smt {smt}", f"take one of {', '.join(SMT_CHOICES)}")
    for node in nodes:
        if not machine.nodes[machine.index_of_node(node)].cpus:
            raise UsageError(f"node {node} has no cpus", "name nodes that threads can run on")
    for cpu in without:
        if cpu not in machine.node_of_cpu:
            raise UsageError(f"--without-cpus: no cpu {cpu} on this machine", "name cpus that it has")
    if not nodes and not without and smt == "share":
        return machine
    keep = {cpu for node in machine.nodes if not nodes or node.id in nodes for cpu in node.cpus}
    keep -= set(without)
    if smt == "avoid":
        keep -= {cpu for core in machine.cores for cpu in [c for c in sorted(core.cpus) if c in keep][1:]}
    if not keep:
        raise UsageError("no cpu is left to place threads on", "reserve fewer cpus, or name more nodes")
    return msgspec.structs.replace(
        machine,
        nodes=tuple(
            msgspec.structs.replace(node, cpus=tuple(cpu for cpu in node.cpus if cpu in keep))
            for node in machine.nodes
        ),
        cores=tuple(
            msgspec.structs.replace(core, cpus=cpus)
            for core in machine.cores
            if (cpus := tuple(cpu for cpu in core.cpus if cpu in keep))
        ),
        caches=(),  # sizes of caches of cpus that are gone; places need only what `cores` says
    )
