"""What a plan says of being for more threads than were recorded: the pattern, and how well that predicts."""

import msgspec

from .plan import Plan

SHOWN = 0.005  # of the communication


class LeftOutRun(msgspec.Struct, frozen=True):
    """threads: how many share the work in a recording that the pattern was not fitted to; correlation: of the
    predicted with the recorded matrix, pairs of threads (Pearson); overlap: share of the communication that
    is between the threads that were predicted; flat: all pairs are alike, and the overlap counts."""

    threads: int
    correlation: float
    overlap: float
    flat: bool = False


class OtherPattern(msgspec.Struct, frozen=True):
    """A pattern that explains the recordings as well: how its matrix correlates with the plan's."""

    features: list[str]
    agreement: float


class ScalingFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """threads: that share the work, recorded: the same of the recordings; beside: creation paths of others;
    features: share of all communication; explained: of the recordings' variance by the pattern; quality: the
    mean over what was left out, enough: to plan by it without being asked to."""

    threads: int
    recorded: list[int]
    pattern: list[str]
    order: str
    features: dict[str, float]
    explained: float
    left_out: list[LeftOutRun]
    quality: float
    enough: bool
    beside: list[str] = []
    unsure: OtherPattern | None = None


def scaling_of(plan: Plan) -> ScalingFacts | None:
    """What the plan's provenance says of it; None where it says nothing, or what nobody can read."""
    try:
        found = plan.provenance.get("scaling")
        return None if found is None else msgspec.convert(found, ScalingFacts)
    except msgspec.ValidationError:
        return None


def scaling_lines(found: ScalingFacts) -> list[str]:
    """Lines for a terminal."""
    recorded = ", ".join(map(str, found.recorded))
    beside = f"; beside them {', '.join(found.beside)}" if found.beside else ""
    features = [(share, name) for name, share in found.features.items() if share >= SHOWN]
    shown = ", ".join(f"{name} {share:.0%}" for share, name in sorted(features, reverse=True))
    lines = [
        f"carried over          {found.threads} threads share the work, recorded were {recorded}{beside}",
        f"pattern               {' and '.join(found.pattern)}: {shown}",
        f"predicts              {quality_words(found)}",
    ]
    if found.unsure is not None:
        lines.append(
            f"unsure                {', '.join(found.unsure.features)} explains the recordings as well, and"
            f" means another matrix for {found.threads} threads (r {found.unsure.agreement:.2f}): a recording"
            " with another number of threads tells"
        )
    return lines


def quality_words(found: ScalingFacts) -> str:
    """How well each number of threads is predicted from the others."""
    parts = [
        f"{one.threads} threads {'all alike' if one.flat else f'r {one.correlation:.2f}'}"
        f" ({one.overlap:.0%} between the right threads)"
        for one in found.left_out
    ]
    return f"{', '.join(parts)}, each from the others alone; in the mean {found.quality:.2f}"
