"""What a plan says of being for more threads than were recorded: the pattern, and how well that predicts."""

from collections.abc import Iterator

import msgspec

from .plan import Plan

SHOWN = 0.005  # of the communication
TELLS = "a recording with another number of threads tells"


class LeftOutRun(msgspec.Struct, frozen=True):
    """threads: how many share the work in a recording that the pattern was not fitted to; correlation: of the
    predicted with the recorded matrix, pairs of threads (Pearson); overlap: share of the communication that
    is between the threads that were predicted; flat: all pairs are alike, and the overlap counts; alone: what
    counts if it does not decide between patterns that the others show alike either, None: not known."""

    threads: int
    correlation: float
    overlap: float
    flat: bool = False
    alone: float | None = None

    @property
    def quality(self) -> float:
        """What counts."""
        return self.overlap if self.flat else self.correlation


class OtherPattern(msgspec.Struct, frozen=True):
    """A pattern that explains the recordings as well: how its matrix correlates with the plan's; common:
    share of the communication that is between the same threads; open: nothing says which of both it is, and
    they have next to nothing in common."""

    features: list[str]
    agreement: float
    common: float | None = None
    open: bool = False


class ScalingFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """threads: that share the work, recorded: the same of the recordings; beside: creation paths of others;
    features: share of all communication; explained: of the recordings' variance by the pattern; quality: the
    worst of what was left out, enough: to plan by it without being asked to; few: all recordings but those of
    one number have too few threads to tell; alone: the number that the others predict badly where it does not
    decide ties; rounds: how often the threads are made, one team after another; unexplained: share of the
    communication in the largest recording that is not as the pattern has it; unfollowed: regions whose users
    with so many threads nobody knows, unfollowed_share: of all accesses, those to them."""

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
    few: bool = False
    alone: int | None = None
    rounds: int = 1
    unexplained: float = 0.0
    unfollowed: int = 0
    unfollowed_share: float = 0.0


def scaling_of(plan: Plan) -> ScalingFacts | None:
    """What the plan's provenance says of it; None where it says nothing, or what nobody can read."""
    try:
        found = plan.provenance.get("scaling")
        return None if found is None else msgspec.convert(found, ScalingFacts)
    except msgspec.ValidationError:
        return None


def scaling_lines(found: ScalingFacts) -> list[str]:
    """Lines for a terminal."""
    recorded = f"recorded were {', '.join(map(str, found.recorded))}"
    beside = f"; beside them {', '.join(found.beside)}" if found.beside else ""
    features = [(share, name) for name, share in found.features.items() if share >= SHOWN]
    times = f", {found.rounds} teams in turn" if found.rounds > 1 else ""
    shown = ", ".join(f"{name} {share:.0%}" for share, name in sorted(features, reverse=True))
    lines = [
        f"carried over          {found.threads} threads share the work{times}, {recorded}{beside}",
        f"pattern               {' and '.join(found.pattern)}: {shown}",
        f"predicts              {quality_words(found)}",
    ]
    unsure = [f"{why}: {TELLS}" for why in _unsure(found)]
    if found.unfollowed:
        regions = f"{found.unfollowed} region{'s' * (found.unfollowed > 1)}"
        unsure.append(
            f"{regions} ({found.unfollowed_share:.1%} of accesses) could not be carried over: who uses which"
            " pages shows no order that is known; interleaved, or left to who touches them first"
        )
    return lines + [f"unsure                {why}" for why in unsure]


def _unsure(found: ScalingFacts) -> Iterator[str]:
    """Why the plan may be a wrong one."""
    if found.few:
        yield "numbers below 4 can hardly tell one pattern from another"
    decided = [
        (one.alone, one) for one in found.left_out if one.threads == found.alone and one.alone is not None
    ]
    for alone, one in sorted(decided, key=lambda pair: pair[0])[:1]:
        yield (
            f"the others alone predict {one.threads} threads with {alone:.2f}, and with {one.quality:.2f}"
            " where all recordings decide between patterns that those show alike"
        )
    if found.unexplained:
        yield (
            f"the pattern does not explain {found.unexplained:.1%} of the communication of"
            f" {max(found.recorded)} threads, which may be more of {found.threads}"
        )
    if found.unsure is not None:
        common = found.unsure.common
        pairs = "" if common is None else f", {common:.0%} between the same threads"
        yield (
            f"{', '.join(found.unsure.features)} explains the recordings as well, and means another matrix"
            f" for {found.threads} threads (r {found.unsure.agreement:.2f}{pairs})"
        )


def quality_words(found: ScalingFacts) -> str:
    """How well each number of threads is predicted from the others."""
    parts = [
        f"{one.threads} threads {'all alike' if one.flat else f'r {one.correlation:.2f}'}"
        f" ({one.overlap:.0%} between the right threads)"
        for one in found.left_out
    ]
    return f"{', '.join(parts)}, each from the others, ties decided by all; at worst {found.quality:.2f}"
