"""The workload of another number of threads than those that were recorded."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from numaplan.common import UsageError

from ..plan_file.scaling import LeftOutRun, OtherPattern, ScalingFacts, quality_words
from ..threads.inputs import MAX_THREADS
from ..workload.lifetimes.lanes import by_lane, lanes_of
from ..workload.part import WHOLE, Part
from ..workload.program import other_program, program_facts
from ..workload.workload import Workload
from .carry import Carried
from .pattern import Pattern, find_pattern
from .quality import ENOUGH, FEWEST, Quality, measure_quality, team_matrices
from .rounds import NO_PLACE, common_rounds, in_rounds, rounds_of
from .team import Team, find_teams

SHOWN = 0.05  # of the strongest kind, that another must have to be named
ROLES = 0.9  # correlation of what was left out, from which threads have roles


class Scaling(msgspec.Struct, frozen=True):
    """A workload of `threads` members, and what it is told from: recordings of `recorded` members; teams: of
    each recording, in the order in which they were given."""

    workload: Workload
    pattern: Pattern
    quality: Quality
    threads: int
    recorded: tuple[int, ...]
    beside: tuple[str, ...]
    teams: tuple[Team, ...]


def scaled_workload(paths: Sequence[Path], threads: int, *, force: bool, part: Part = WHOLE) -> Workload:
    """What a program does with so many threads, by recordings with other numbers.

    Raises UsageError for recordings that do not tell, and, without force, where the pattern does not predict
    a recording that it was not fitted to.
    """
    from ..workload.from_trace import workload_of_trace

    _check(paths, threads)
    recorded = [_of_a_larger_input(workload_of_trace(path, part=part, larger=True)) for path in paths]
    for path, other in zip(paths[1:], recorded[1:], strict=True):
        if other_program(*map(program_facts, (recorded[0], other))):
            raise UsageError(
                f"{path}: of another program, or another build of it", "give runs of one program"
            )
    sources = {key: one.sources[key] for one in recorded[:1] for key in one.sources if key != "trace"}
    sources["traces"] = [one.sources["trace"] for one in recorded]
    lanes = [lanes_of(one.threads, one.lives) for one in recorded]
    found = carry_over([by_lane(*pair) for pair in zip(recorded, lanes, strict=True)], threads)
    each = [rounds_of(*one) for one in zip(recorded, lanes, found.teams, strict=True)]
    rounds = common_rounds(each, threads)
    facts = replace(facts_of(found), rounds=rounds or 1)
    if not facts.enough and not force:
        raise UsageError(_refused(found, facts), "record with further numbers of threads, or add --force")
    workload = in_rounds(found.workload, found.teams[0], threads, rounds) if rounds > 1 else found.workload
    return replace(
        workload,
        sources={**sources, "scaling": msgspec.to_builtins(facts)},
        notes=workload.notes if rounds else (*workload.notes, NO_PLACE),
    )


def carry_over(workloads: Sequence[Workload], threads: int) -> Scaling:
    """The workload of so many members of the team, by those of recordings with two numbers or more."""
    teams = find_teams(workloads)
    pairs = sorted(zip(workloads, teams, strict=True), key=lambda pair: len(pair[1]))
    pattern = find_pattern(team_matrices(pairs).values())
    quality = measure_quality(pairs, pattern, threads)
    # Which thread does what is the same in all recordings: that is what a role is.
    roles = any(not one.flat for one in quality.left_out) and quality.value >= ROLES
    roles = roles and pattern.explained >= ROLES
    workload, beside = Carried(pairs, pattern, threads).workload(roles=roles)
    recorded = tuple(sorted({len(team) for team in teams}))
    return Scaling(workload, pattern, quality, threads, recorded, beside, tuple(teams))


def facts_of(found: Scaling) -> ScalingFacts:
    """What a plan, and people, are told of it."""
    quality, pattern = found.quality, found.pattern
    comm = np.asarray(found.workload.comm)
    beside = [path in found.beside for _, path in found.workload.threads]
    others = float(comm[beside].sum() + comm[:, beside].sum() - comm[np.ix_(beside, beside)].sum())
    apart = others / (float(comm.sum()) or 1.0)
    features = {name: share * (1 - apart) for name, share in pattern.shares(found.threads).items()}
    kinds = {kind: share * (1 - apart) for kind, share in pattern.kinds(found.threads).items()}
    if apart > 0:
        features[f"{', '.join(found.beside)} with all"] = apart
        kinds["hub"] = kinds.get("hub", 0.0) + apart
    most = max(kinds.values(), default=0.0)
    unfollowed, share = _unfollowed(found.workload)
    return ScalingFacts(
        threads=found.threads,
        recorded=list(found.recorded),
        pattern=[
            kind for kind in sorted(kinds, key=lambda kind: -kinds[kind]) if kinds[kind] >= SHOWN * most
        ],
        order=pattern.order,
        features={name: round(share, 4) for name, share in features.items()},
        explained=round(pattern.explained, 4),
        left_out=[
            LeftOutRun(
                one.threads, round(one.correlation, 4), round(one.overlap, 4), one.flat, round(one.alone, 4)
            )
            for one in quality.left_out
        ],
        quality=round(quality.value, 4),
        enough=quality.enough,
        beside=list(found.beside),
        unsure=_unsure(quality),
        few=quality.few,
        alone=quality.alone.threads if quality.alone else None,
        unexplained=round(quality.unexplained, 4),
        unfollowed=unfollowed,
        unfollowed_share=round(share, 4),
    )


def _unfollowed(workload: Workload) -> tuple[int, float]:
    """How many regions are nobody's that is known, and what share of the accesses to all is to them."""
    pages = workload.pages
    if pages is None or not pages.unfollowed:
        return 0, 0.0
    nobodys = np.array([key in pages.unfollowed for key in pages.regions])
    return len(pages.unfollowed), float(pages.accesses[nobodys[pages.region]].sum() / pages.accesses.sum())


def _unsure(quality: Quality) -> OtherPattern | None:
    other = quality.other
    if other is None:
        return None
    agreement, common = round(other.agreement, 4), round(other.common, 4)
    return OtherPattern(list(other.features), agreement, common, quality.open)


def _refused(found: Scaling, facts: ScalingFacts) -> str:
    """Why nobody should plan by a pattern."""
    if found.quality.value < ENOUGH:
        words = quality_words(facts)
        return f"the pattern does not predict what it was not fitted to: {words}, below {ENOUGH}"
    if facts.few:
        recorded = ", ".join(map(str, facts.recorded))
        return f"a pattern is told from two numbers of {FEWEST} threads or more, recorded were {recorded}"
    other = facts.unsure
    assert other is not None
    names = ", ".join(found.pattern.features), ", ".join(other.features)
    return (
        f"the recordings do not tell '{names[0]}' from '{names[1]}', which of {facts.threads} threads'"
        f" communication have {other.common or 0:.0%} in common"
    )


def _check(paths: Sequence[Path], threads: int) -> None:
    if len(paths) < 2:
        raise UsageError(
            "--threads with one recording", "give recordings with two or more numbers of threads"
        )
    if not 2 <= threads <= MAX_THREADS:
        raise UsageError(f"--threads {threads}", f"2 to {MAX_THREADS} threads can be placed")


def _of_a_larger_input(workload: Workload) -> Workload:
    """With what reaches memory of the largest input that the recording tells of: caches hold a small one."""
    if not workload.larger:
        return workload
    last = workload.larger[-1]
    lasted_s = workload.lasted_s * last.times
    return replace(workload, pages=last.pages, larger=(), counted=None, lasted_s=lasted_s)
