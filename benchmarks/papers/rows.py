"""One row: what a paper says, what we got, and whether that agrees in size, in direction, or not."""

from collections.abc import Sequence

import msgspec
import numpy as np

SCHEMA = "numaplan/papers/1"
NEUTRAL = 0.05  # of 1: a ratio so near 1 says that nothing changed
RESAMPLED = 1000  # times, for intervals of what is no mean
SIZE = 0.35  # of the paper's effect
_STEADY = "not here: threads that stay, and pages that move late, vary with where they began"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """paper_value: a number, or words where the paper gives no number; value with its 95 % interval over
    so many seeds (none: nothing is drawn), None where it could not be measured (then `no`).
    """

    paper: str
    table: str
    row: str
    paper_value: float | str
    value: float | None
    low: float | None = None
    high: float | None = None
    seeds: int | None = None
    verdict: str
    why: str


class Rows(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    schema: str
    seeds: int
    rows: list[Row]


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, and the 95 % interval of it by Student's t; the mean thrice for one value."""
    from scipy.stats import t

    data = np.asarray(values, dtype=np.float64)
    mean = float(data.mean())
    if len(data) < 2:
        return mean, mean, mean
    half = float(t.ppf(0.975, len(data) - 1) * data.std(ddof=1) / np.sqrt(len(data)))
    return mean, mean - half, mean + half


def ratio_of_means(values: Sequence[float], base: Sequence[float]) -> tuple[float, float, float]:
    """Mean of values over mean of base, pairs by seed, and the 95 % interval of that by resampling seeds.

    For bases that come near 0, where single ratios are endless.
    """
    pair = np.array([values, base], dtype=np.float64)
    draws = np.random.default_rng(0).integers(0, pair.shape[1], (RESAMPLED, pair.shape[1]))
    above, below = pair[:, draws].mean(axis=2)
    low, high = np.quantile(above / below, [0.025, 0.975]).tolist()
    return float(pair[0].mean() / pair[1].mean()), low, high


def effect_verdict(paper: float, value: float) -> str:
    """For ratios to a baseline of 1: `size` when the effects agree within SIZE or both are neutral."""
    expected, got = paper - 1.0, value - 1.0
    if abs(expected) <= NEUTRAL:
        return "size" if abs(got) <= NEUTRAL else "no"
    if abs(got - expected) <= max(SIZE * abs(expected), NEUTRAL):
        return "size"
    return "direction" if got * expected > 0 and abs(got) > 0.01 else "no"


def _row(
    where: tuple[str, str, str],
    paper_value: float | str,
    measured: tuple[float, float, float],
    seeds: int,
    verdict: str,
    why: str,
) -> Row:
    """A row with its mean and interval. where: paper, table, row."""
    paper, table, row = where
    value, low, high = (round(number, 3) for number in measured)
    return Row(
        paper=paper,
        table=table,
        row=row,
        paper_value=paper_value,
        value=value,
        low=low,
        high=high,
        seeds=seeds,
        verdict=verdict,
        why=why,
    )


def ratio_row(
    paper: str, table: str, row: str, expected: float, values: Sequence[float], why: dict[str, str]
) -> Row:
    """A ratio to the baseline over seeds; `why` by verdict."""
    mean, low, high = interval(values)
    verdict = effect_verdict(expected, mean)
    return _row((paper, table, row), expected, (mean, low, high), len(values), verdict, why.get(verdict, ""))


def claim_row(
    paper: str,
    table: str,
    row: str,
    claim: str,
    values: Sequence[float],
    bound: float,
    why: str = "",
    *,
    above: bool = False,
    within: bool = False,
) -> Row:
    """A claim in words: that the mean (with `within` the low end of its interval) is no more than `bound`.

    above: no less than it.
    """
    mean, low, high = interval(values)
    holds = mean >= bound if above else (low if within else mean) <= bound
    verdict = "direction" if holds else "no"
    return _row((paper, table, row), claim, (mean, low, high), len(values), verdict, "" if holds else why)


def spread_row(where: tuple[str, str, str], claim: str, ratios: Sequence[float], seeds: int) -> Row:
    """A claim that something is steadier: a ratio of spreads below 1; ratios: that, then resampled ones.

    where: paper, table, row.
    """
    low, high = np.quantile(ratios[1:], [0.025, 0.975]).tolist()
    steadier, unclear = ratios[0] <= 1.0, low <= 1.0 <= high
    why = f"the interval holds 1: {seeds} seeds do not tell" if unclear else "" if steadier else _STEADY
    return _row(where, claim, (ratios[0], low, high), seeds, "direction" if steadier else "no", why)


def as_json(rows: list[Row], seeds: int) -> bytes:
    """The document of `papers --json` (numaplan/papers/1)."""
    return msgspec.json.encode(Rows(SCHEMA, seeds, rows))
