"""Messages by Open MPI's own monitoring: at MPI_Finalize each rank writes what it sent, to whom.

`E` rows are the program's messages, `I` rows those that collectives and MPI itself are made of; `S` is what
was put into another rank's memory, `R` what was got of it. Histograms and sums of collectives follow, which
say nothing new.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..trace.schema import MOST_RANKS
from .message import Found, Messages

_SETTINGS = {"enable": "2", "enable_output": "3"}  # collectives apart; into a file
_KINDS = {"E": "sent", "I": "collective", "S": "put", "R": "get"}
_ROW = re.compile(r"([EISR])\t([0-9]{1,8})\t([0-9]{1,8})\t([0-9]{1,18}) bytes\t([0-9]{1,18}) msgs sent\b")
_FILE = re.compile(r"rank\.([0-9]{1,8})\.prof")
# native/recorder/monitoring.c has a rank that ends without MPI_Finalize write, too, and tells what is missed.
_FOLDER = "NUMAPLAN_MONITORING"
_PERSISTENT = "what persistent requests send is not counted: record with --messages pmpi"
_PREFIX = "OMPI_MCA_pml_monitoring_"


class Monitoring:
    """Open MPI's monitoring component, switched on by the environment."""

    name = "monitoring"
    why_none = "killed, or by an MPI without monitoring"
    when_killed = (
        "a signal ended the program while Open MPI's own monitoring was on, which may be why: record with"
        " --messages pmpi, or --messages no"
    )

    def environment(self, folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
        """See Way.environment."""
        settings = {**_SETTINGS, "filename": str(folder / "rank")}
        switched_on = {f"{_PREFIX}{name}": value for name, value in settings.items()}
        return {**environment, **switched_on, _FOLDER: str(folder)}

    def read(self, folder: Path) -> Found:
        """See Way.read."""
        found: list[Messages] = []
        ranks = set()
        for path in sorted(folder.iterdir()):
            name = _FILE.fullmatch(path.name)
            if name and int(name[1]) < MOST_RANKS:
                ranks.add(int(name[1]))
                found += _rows(path, int(name[1]))
        return Found(found, frozenset(ranks), [_PERSISTENT] * (folder / "persistent").exists())


def in_use(environment: Mapping[str, str]) -> bool:
    """Whether somebody else has switched it on."""
    return f"{_PREFIX}enable" in environment


def _rows(path: Path, rank: int) -> Iterator[Messages]:
    with path.open(errors="replace") as file:
        for line in file:
            row = _ROW.match(line)
            if row and int(row[2]) == rank and int(row[3]) < MOST_RANKS:
                yield Messages(rank, int(row[3]), _KINDS[row[1]], int(row[4]), int(row[5]))
