"""The lab's results: one run's counts and costs, and runs of several configurations side by side."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.machine import Machine, placement_cost

from .counts import Counts

RUN_SCHEMA = "numaplan/lab/1"
COMPARE_SCHEMA = "numaplan/lab-compare/1"
METRICS = (
    "local_share",
    "local",
    "remote",
    "hop_cost",
    "mean_distance",
    "traffic_imbalance",
    "migrated",
    "hint_faults",
    "seconds",
)
CACHE_METRICS = ("cost", "memory_local_share", "memory_imbalance", "lines_between_nodes", "busiest_cpu")


class ThreadCounts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thread's accesses by node (in the order of the run's `nodes`) and by cpu it ran on."""

    path: str
    name: str
    tid: int
    accesses: list[int]
    cpus: dict[int, int]


class LabRun(msgspec.Struct, kw_only=True):
    """One counted run (`numaplan/lab/1`).

    accesses: [cpu][node], in the order of `cpus` and `nodes`; local_share: of all accesses with a known node,
    0 when there are none; hop_cost: sum of accesses times distance (local counts 10); mean_distance: that per
    access; node_traffic: accesses to each node's memory; traffic_imbalance: the largest over the mean;
    unknown: accesses to pages of no node; polls: accesses by loops that only wait, which nothing else counts;
    kernel: what the kernel counted meanwhile; seconds: in the guest;
    failed: the program did not exit with 0; said: the last line of its stderr then (comparisons only);
    applied: nlaunch's report.

    With caches also: memory_accesses: [cpu][node] that no cache answered; lines_moved: [cpu][cpu] that the
    first took from the caches of the second; cost: ns of waiting (machine/cost.py), costs: its parts;
    memory_local_share, memory_imbalance: as above, of memory_accesses; lines_between_nodes: of lines_moved;
    busiest_cpu: the most accesses that one cpu made over the mean.
    """

    schema: str = RUN_SCHEMA
    machine: str
    config: str
    argv: list[str]
    cpus: list[int]
    cpu_nodes: list[int]
    nodes: list[int]
    accesses: list[list[int]]
    local: int
    remote: int
    local_share: float
    hop_cost: float
    mean_distance: float
    node_traffic: list[int]
    traffic_imbalance: float
    unknown: int
    excluded: int
    polls: int = 0
    migrated: int
    hint_faults: int
    kernel: dict[str, int]
    exit_code: int
    timed_out: bool
    seconds: float
    said: str = ""
    failed: bool = False
    applied: dict[str, Any] | None = None
    threads: list[ThreadCounts] | None = None
    memory_accesses: list[list[int]] | msgspec.UnsetType = msgspec.UNSET
    lines_moved: list[list[int]] | msgspec.UnsetType = msgspec.UNSET
    cost: float | msgspec.UnsetType = msgspec.UNSET
    costs: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    memory_local_share: float | msgspec.UnsetType = msgspec.UNSET
    memory_imbalance: float | msgspec.UnsetType = msgspec.UNSET
    lines_between_nodes: int | msgspec.UnsetType = msgspec.UNSET
    busiest_cpu: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def cached(self) -> bool:
        """Whether caches were modelled."""
        return self.cost is not msgspec.UNSET


class Spread(msgspec.Struct, frozen=True):
    """A metric over the repeats."""

    median: float
    min: float
    max: float


class ConfigResult(msgspec.Struct, kw_only=True):
    """All runs of one configuration, and each metric's spread over those that did not fail (or all)."""

    runs: list[LabRun]
    failed: int = 0  # how many runs
    local_share: Spread
    local: Spread
    remote: Spread
    hop_cost: Spread
    mean_distance: Spread
    traffic_imbalance: Spread
    migrated: Spread
    hint_faults: Spread
    seconds: Spread
    cost: Spread | msgspec.UnsetType = msgspec.UNSET
    memory_local_share: Spread | msgspec.UnsetType = msgspec.UNSET
    memory_imbalance: Spread | msgspec.UnsetType = msgspec.UNSET
    lines_between_nodes: Spread | msgspec.UnsetType = msgspec.UNSET
    busiest_cpu: Spread | msgspec.UnsetType = msgspec.UNSET

    @property
    def useless(self) -> bool:
        """Whether every run failed: the spreads then tell nothing of the configuration."""
        return 0 < len(self.runs) == self.failed

    def problem(self) -> str:
        """How the first run that failed did, with the program's own last line; empty where none did."""
        for run in self.runs:
            if run.failed:
                how = (
                    f"ran out of time after {run.seconds:.0f} s"
                    if run.timed_out
                    else f"exited with {run.exit_code}"
                )
                return f"the program {how}" + (f": {run.said}" if run.said else "")
        return ""


class LabCompare(msgspec.Struct, kw_only=True):
    """Runs of several configurations in one boot (`numaplan/lab-compare/1`)."""

    schema: str = COMPARE_SCHEMA
    machine: str
    argv: list[str]
    boot_seconds: float
    configs: dict[str, ConfigResult]
    gates: list[dict[str, Any]] = []


def lab_run(
    machine: Machine,
    counts: Counts,
    *,
    config: str,
    argv: Sequence[str],
    kernel: Mapping[str, int],
    exit_code: int,
    timed_out: bool,
    seconds: float,
    cached: bool = False,
    well: int = 0,
) -> LabRun:
    """A run's counts with their costs on `machine` (dense: cpus and nodes from 0 up); cached: with caches.

    well: the exit code of a run that did not fail.
    """
    accesses = counts.accesses
    owner = np.array([machine.index_of_node(machine.node_of_cpu[cpu]) for cpu in machine.cpus])
    local = _local(accesses, owner)
    total = int(accesses.sum())
    cost = float((accesses * machine.distance_matrix[owner]).sum())
    traffic = accesses.sum(axis=0)
    run = LabRun(
        machine=machine.name,
        config=config,
        argv=list(argv),
        cpus=list(machine.cpus),
        cpu_nodes=[machine.node_of_cpu[cpu] for cpu in machine.cpus],
        nodes=list(machine.node_ids),
        accesses=accesses.tolist(),
        local=local,
        remote=total - local,
        local_share=local / total if total else 0.0,
        hop_cost=cost,
        mean_distance=cost / total if total else 0.0,
        node_traffic=traffic.tolist(),
        traffic_imbalance=_over_mean(traffic),
        unknown=counts.unknown,
        excluded=counts.excluded,
        polls=int(counts.polls.sum()),
        migrated=kernel.get("moved", 0),
        hint_faults=kernel.get("numa_hint_faults", 0),
        kernel=dict(kernel),
        exit_code=exit_code,
        failed=timed_out or exit_code != well,
        timed_out=timed_out,
        seconds=seconds,
    )
    return _with_lines(run, counts, machine, owner) if cached else run


def _with_lines(run: LabRun, counts: Counts, machine: Machine, owner: NDArray[np.int64]) -> LabRun:
    """The same with what left the caches. owner: (C,) row of each cpu's node."""
    memory, lines, made = counts.memory, counts.lines, counts.accesses.sum(axis=1)
    total = int(memory.sum())
    shared = counts.waited / np.maximum(made, 1)
    cost = placement_cost(
        machine,
        machine.cpus,
        memory,
        lines=lines,
        accesses=made,
        shared=shared,
        pages_moved=run.migrated,
    )
    return msgspec.structs.replace(
        run,
        memory_accesses=memory.tolist(),
        lines_moved=lines.tolist(),
        cost=cost.total_ns,
        costs=msgspec.structs.asdict(cost),
        memory_local_share=_local(memory, owner) / total if total else 0.0,
        memory_imbalance=_over_mean(memory.sum(axis=0)),
        lines_between_nodes=int(lines[owner[:, None] != owner].sum()),
        busiest_cpu=_over_mean(made),
    )


def _local(counted: NDArray[np.int64], owner: NDArray[np.int64]) -> int:
    """What of (C, K) is on each cpu's own node."""
    return int(counted[np.arange(len(owner)), owner].sum())


def _over_mean(values: NDArray[np.int64]) -> float:
    """The greatest over the mean; 0 where there is nothing."""
    return float(values.max() / values.mean()) if values.any() else 0.0


def summarize(runs: Sequence[LabRun]) -> ConfigResult:
    """Median, least and greatest of every metric over a configuration's runs (at least one)."""
    spreads = {}
    good = [run for run in runs if not run.failed]
    for name in (*METRICS, *(CACHE_METRICS if runs[0].cached else ())):
        values = [float(getattr(run, name)) for run in good or runs]
        spreads[name] = Spread(median(values), min(values), max(values))
    return ConfigResult(runs=list(runs), failed=len(runs) - len(good), **spreads)
