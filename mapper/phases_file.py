"""phases.csv as `nmap analyze --to` writes it: a header, then start, end, weight and loads of each phase."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from numaplan.common import UsageError, read_document
from numaplan.mapper.problem import Floats, check_phases

_MEND = "give the phases.csv of 'nmap analyze --to'"
_BEFORE = 3  # columns before the loads: start_ns, end_ns, weight
MOST_PHASES = 1000
LIMIT = 1 << 28


class PhasesFile(NamedTuple):
    """Loads by phase (P, N), and accesses a time in each (P,)."""

    loads: Floats
    rates: Floats


def read_phases(path: Path, threads: int) -> PhasesFile:
    """Read loads by phase; raises UsageError naming the row that is wrong."""
    try:
        text = read_document(path, "phases", LIMIT).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not text (byte {error.start})", _MEND) from error
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or not lines[0].startswith("start_ns,"):
        raise UsageError(f"{path}: no phases in it", _MEND)
    if len(lines) - 1 > MOST_PHASES:
        raise UsageError(f"{path}: {len(lines) - 1} phases", f"give at most {MOST_PHASES}")
    rows = np.empty((len(lines) - 1, _BEFORE + threads))
    for number, line in enumerate(lines[1:]):
        fields = line.split(",")
        if len(fields) != rows.shape[1]:
            raise UsageError(
                f"{path}: row {number} has {len(fields) - _BEFORE} loads for {threads} threads", _MEND
            )
        try:
            rows[number] = fields
        except ValueError as error:
            raise UsageError(f"{path}: row {number}: {error}", _MEND) from error
    try:
        return PhasesFile(check_phases(rows[:, _BEFORE:], threads), check_phases(rows[:, 2], len(rows))[0])
    except UsageError as error:
        raise UsageError(f"{path}: {error.what}", error.mend) from error
