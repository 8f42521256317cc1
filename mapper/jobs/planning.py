"""The plan of a job: ranks on hosts first, then each host by itself, wherever the engine does that.

The same parts give the same bytes on every engine: what is planned for a host depends on its ranks' parts,
its machine and the options only.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from numaplan.common import check_engine, run_all, version
from numaplan.machine import Cluster, Machine

from ..plan_file.plan import Plan
from ..planning.options import PlanOptions
from ..planning.planner import make_plan
from ..threads.methods import find_method
from ..threads.problem import check_words
from .document import JobPlan, JobPredicted, JobRank
from .host_workload import join
from .part_reading import read_part
from .part_tables import part_folders
from .placing import RANK_ORDER, ROUND_ROBIN, RankPlacement, by_host, place_ranks
from .rank_graph import SUMMARISED, RankGraph, RankSummary, rank_graph, summarise

Progress = Callable[[str, float], None]
_BATCH = 32  # parts that a piece of work reads, so that sending it is little beside doing it


class PlannedJob(msgspec.Struct, frozen=True):
    """A job's plan, and what is worth saying about it."""

    plan: JobPlan
    notes: tuple[str, ...]


class HostTask(msgspec.Struct, frozen=True):
    """What a worker is told: plan this host for the parts of these ranks."""

    host: str
    machine: Machine
    folders: tuple[Path, ...]
    options: PlanOptions


class HostAnswer(msgspec.Struct, frozen=True):
    """The text of a host's plan, and its notes."""

    plan: bytes
    notes: tuple[str, ...]


def plan_job(
    job: Path,
    cluster: Cluster,
    options: PlanOptions,
    *,
    engine: str = "local",
    progress: Progress = lambda _what, _share: None,
) -> PlannedJob:
    """Plan the job whose parts are in a folder.

    Raises UsageError for parts, a cluster or options that cannot be, and as `run_all` does.
    """
    check_engine(engine)
    find_method(options.method)  # now rather than when all parts have been read
    check_words(options.objective or "time", options.effort)
    folders = part_folders(job)
    batches = [list(folders.values())[at : at + _BATCH] for at in range(0, len(folders), _BATCH)]
    found = run_all(
        engine, summarise_all, batches, lambda done: progress("reading parts", done / len(batches))
    )
    summaries = [one for batch in found for one in batch]
    graph = rank_graph(summaries)
    progress("placing ranks on hosts", -1.0)
    placement = place_ranks(graph, cluster, seed=options.seed, effort=options.effort)
    ranks = by_host(graph, cluster, placement)
    tasks = [
        HostTask(host, cluster.by_name[host].machine, tuple(folders[rank] for rank in own), options)
        for host, own in ranks.items()
    ]
    answers = run_all(engine, plan_host, tasks, lambda done: progress("planning hosts", done / len(tasks)))
    plans = {
        task.host: Plan.from_json(answer.plan, task.host) for task, answer in zip(tasks, answers, strict=True)
    }
    host_of = {rank: host for host, own in ranks.items() for rank in own}
    plan = JobPlan(
        ranks=_ranks(summaries, host_of),
        hosts=plans,
        cluster=cluster,
        predicted=_predicted(graph, placement, plans),
        provenance=_provenance(summaries, placement, options),
    )
    return PlannedJob(plan, (*_notes(graph, cluster, placement), *_notes_of_hosts(tasks, answers)))


def summarise_all(folders: Sequence[Path]) -> list[RankSummary]:
    """Of several parts, as a worker does it."""
    return [summarise(read_part(folder, SUMMARISED)) for folder in folders]


def plan_host(task: HostTask) -> HostAnswer:
    """The plan of one host, as a worker makes it."""
    planned = make_plan(join([read_part(folder) for folder in task.folders]), task.machine, task.options)
    return HostAnswer(planned.plan.to_json(), planned.notes)


def _ranks(summaries: Sequence[RankSummary], host_of: dict[int, str]) -> tuple[JobRank, ...]:
    """Where each rank runs, with its program where they run several."""
    several = len({one.argv for one in summaries if one.argv}) > 1
    return tuple(
        JobRank(rank=one.rank, host=host_of[one.rank], argv=one.argv if several else ()) for one in summaries
    )


def _predicted(graph: RankGraph, placement: RankPlacement, plans: dict[str, Plan]) -> JobPredicted:
    shares = {host: plan.predicted.local_share for host, plan in plans.items()}
    if not graph.messages:
        return JobPredicted(local_share=shares)
    return JobPredicted(
        message_bytes=graph.bytes.sum() / 2,
        between_hosts=placement.between[placement.name],
        hop_bytes=placement.hops[placement.name],
        baselines={name: placement.between[name] for name in (RANK_ORDER, ROUND_ROBIN)},
        local_share=shares,
    )


def _provenance(
    summaries: Sequence[RankSummary], placement: RankPlacement, options: PlanOptions
) -> dict[str, Any]:
    import hashlib

    recordings = "\n".join(one.recording for one in summaries)
    return {
        "recordings": "sha256:" + hashlib.sha256(recordings.encode()).hexdigest(),
        "ranks": placement.name,
        "options": {"method": options.method, **options.recorded()},
        "version": version(),
    }


def _notes(graph: RankGraph, cluster: Cluster, placement: RankPlacement) -> list[str]:
    notes = []
    if not graph.messages:
        notes.append("what ranks send each other was not recorded: they are placed by what else is known")
    if placement.crowded:
        hosts = f"{placement.crowded} host{'s' * (placement.crowded != 1)}"
        notes.append(f"{hosts} of {len(cluster.hosts)} get more threads than cpus")
    idle = len(cluster.hosts) - len(set(placement.places.tolist()))
    if idle:
        notes.append(f"{idle} host{'s' * (idle != 1)} of {len(cluster.hosts)} get no rank")
    return notes


def _notes_of_hosts(tasks: Sequence[HostTask], answers: Sequence[HostAnswer]) -> list[str]:
    """Each note once, with the hosts that it is of where it is not of all."""
    hosts: dict[str, list[str]] = {}
    for task, answer in zip(tasks, answers, strict=True):
        for note in answer.notes:
            hosts.setdefault(note, []).append(task.host)
    lines = []
    for note, names in list(hosts.items())[:_MOST_NOTES]:
        shown = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        lines.append(note if len(names) == len(tasks) else f"{shown}: {note}")
    if len(hosts) > _MOST_NOTES:
        lines.append(f"{len(hosts) - _MOST_NOTES} more notes on single hosts are left out")
    return lines


_MOST_NOTES = 12
