"""What the lab counted of the placements that advice is about."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from numaplan.analyzer import Advice, Advised, Change
from numaplan.common import BAD_JSON, UsageError, read_document

SCHEMA = "numaplan/lab-compare/1"
USUAL = "default"
# Kind of advice -> the lab's configuration that does it.
CONFIGS = {"plan": "plan", "bind": "compact", "interleave": "interleave"}


class Median(msgspec.Struct, frozen=True):
    """Of the runs of a configuration."""

    median: float


class Config(msgspec.Struct, frozen=True):
    """One configuration that ran in the lab."""

    local_share: Median
    cost: Median | None = None
    failed: int = 0


class LabCounts(msgspec.Struct, frozen=True):
    """The answer of `nlab compare --json`, as far as advice needs it."""

    schema: str
    argv: tuple[str, ...]
    configs: dict[str, Config]


def read_counts(path: Path) -> LabCounts:
    """Raises UsageError for a file that cannot be read, or is something else."""
    hint = "give what 'nlab compare --json' printed"
    try:
        found = msgspec.json.decode(read_document(path, "counts of the lab"), type=LabCounts)
    except BAD_JSON as error:
        raise UsageError(f"{path}: {error}", hint) from error
    if found.schema != SCHEMA:
        raise UsageError(f"{path}: schema {found.schema[:60]!r}, not {SCHEMA}", hint)
    return found


def with_counts(advised: Advised, counts: LabCounts, argv: Sequence[str]) -> Advised:
    """The advice with what was counted, what did harm there last; raises UsageError for another program."""
    ran, recorded = (words[0].rpartition("/")[2] if words else "" for words in (counts.argv, argv))
    if ran and recorded and ran != recorded:
        raise UsageError(f"the counts are of {ran}, the trace is of {recorded}", "count the same program")
    usual = counts.configs.get(USUAL)
    if usual is None or usual.failed:
        return advised
    told = [_counted(one, usual, counts) for one in advised.advice]
    return replace(advised, advice=sorted(told, key=lambda one: one.refuted))


def _counted(advice: Advice, usual: Config, counts: LabCounts) -> Advice:
    found = counts.configs.get(CONFIGS.get(advice.kind, ""))
    if found is None or found.failed:
        return advice
    gain = None
    if found.cost is not None and usual.cost is not None and usual.cost.median > 0:
        gain = round(1 - found.cost.median / usual.cost.median, 4)
    local = Change(round(usual.local_share.median, 4), round(found.local_share.median, 4))
    return replace(advice, counted=local, counted_gain=gain)
