"""What is asked of the table: plans that never harm, help where they can, and predict what is counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from .measuring import BASELINES
from .rows import Row

NEAR_BEST = 0.01  # a plan may cost so much more than the best of the baselines
GAIN = 0.15  # and should cost so much less than the default, in the mean where there is something to gain
NEAR_POINTS, FAR_POINTS, NEAR_SHARE = 3.0, 6.0, 0.9  # predicted against counted local share
DIFFERENT, IN_ORDER = 0.05, 0.9  # pairs of placements whose counted costs differ by so much


@dataclass(frozen=True)
class Verdict:
    """One demand: what was found, whether that is enough (None: nothing to judge by), what is against it."""

    asked: str
    found: str
    met: bool | None
    against: tuple[str, ...] = ()


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """All demands, judged by the rows that have what each needs."""
    return [_never_worse(rows), _gains(rows), _predicts_shares(rows), _predicts_order(rows)]


def over_best(row: Row) -> float | None:
    """The plan's counted cost over the best of all baselines; None where one was not counted."""
    if not {*BASELINES, "plan"} <= set(row.counted):
        return None
    best = min(row.counted[name].cost for name in BASELINES)
    return row.counted["plan"].cost / best if best else 1.0


def gain(row: Row) -> float | None:
    """The part of the default's counted cost that the plan saves."""
    if not {"default", "plan"} <= set(row.counted) or not row.counted["default"].cost:
        return None
    return 1 - row.counted["plan"].cost / row.counted["default"].cost


def share_error(row: Row) -> float | None:
    """Predicted minus counted local share of all accesses, in points."""
    if "plan" not in row.counted or row.predicted is None or row.predicted.local is None:
        return None
    return 100 * (row.predicted.local - row.counted["plan"].local)


def ordered_pairs(row: Row) -> list[tuple[str, str, bool]]:
    """Pairs of placements that differ as counted, the cheaper one first, and whether the plan said so too."""
    costs = row.predicted.costs if row.predicted else {}
    known = [name for name in (*BASELINES, "plan") if name in row.counted and name in costs]
    pairs = []
    for pair in combinations(known, 2):
        cheap, dear = sorted(pair, key=lambda name: row.counted[name].cost)
        if row.counted[dear].cost > (1 + DIFFERENT) * row.counted[cheap].cost:
            pairs.append((cheap, dear, costs[cheap] < costs[dear]))
    return pairs


def _never_worse(rows: Sequence[Row]) -> Verdict:
    found = [(row, ratio) for row in rows if (ratio := over_best(row)) is not None]
    bad = [(row, ratio) for row, ratio in found if ratio > 1 + NEAR_BEST]
    return Verdict(
        "the plan's counted cost within 1 % of the best of default, compact and interleave, everywhere",
        f"{len(found) - len(bad)} of {len(found)}",
        not bad if found else None,
        tuple(f"{_name(row)} {100 * (ratio - 1):+.1f} %" for row, ratio in bad),
    )


def _gains(rows: Sequence[Row]) -> Verdict:
    gains = [found for row in rows if row.homes and (found := gain(row)) is not None]
    mean = fmean(gains) if gains else 0.0
    return Verdict(
        "15 % below the default's cost in the mean where threads have roles or memory has homes",
        f"{100 * mean:.1f} % over {len(gains)}",
        mean >= GAIN if gains else None,
    )


def _predicts_shares(rows: Sequence[Row]) -> Verdict:
    errors = [(row, error) for row in rows if (error := share_error(row)) is not None]
    near = sum(abs(error) <= NEAR_POINTS for _row, error in errors)
    far = [(row, error) for row, error in errors if abs(error) > NEAR_POINTS]
    met = near >= NEAR_SHARE * len(errors) and all(abs(error) <= FAR_POINTS for _row, error in errors)
    worst = max((abs(error) for _row, error in errors), default=0.0)
    return Verdict(
        "the predicted local share within 3 points of the counted for nine in ten, within 6 for all",
        f"{near} of {len(errors)} within 3, the worst {worst:.1f} off",
        met if errors else None,
        tuple(f"{_name(row)} {error:+.1f}" for row, error in far),
    )


def _predicts_order(rows: Sequence[Row]) -> Verdict:
    pairs = [(row, pair) for row in rows for pair in ordered_pairs(row)]
    right = sum(pair[2] for _row, pair in pairs)
    return Verdict(
        "the predicted cost orders nine of ten pairs of placements that differ by 5 % as the count does",
        f"{right} of {len(pairs)}",
        right >= IN_ORDER * len(pairs) if pairs else None,
        tuple(f"{_name(row)}: {cheap} below {dear}" for row, (cheap, dear, same) in pairs if not same),
    )


def _name(row: Row) -> str:
    return f"{row.program} on {row.machine}"
