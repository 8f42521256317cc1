"""Outcomes on disk: an interrupted run of hours continues from there.

One file a simulation, named by what was asked (experiment, configuration, seed) and the code that answered:
after a change of simulator or policies nothing old is taken, after one of the mapper nothing of `numaplan`,
which alone asks it.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import benchmarks.simulator
import numaplan.mapper
from benchmarks.simulator.run import Outcome
from numaplan.common import atomic_output

_COLUMNS = ("ends", "starts", "ran_s")
Asked = tuple[Any, str, int]  # experiment, configuration, seed; the first by its repr


class _Kept(msgspec.Struct):
    """An Outcome as JSON; tasks that did not end have null."""

    ends: list[float | None]
    starts: list[float | None]
    ran_s: list[float]
    remote: float
    latency_ns: float
    thread_moves: int
    moved_gb: float
    migrations: dict[int, list[int]]
    instructions: float


def load(folder: Path, asked: Asked) -> Outcome | None:
    """The outcome that was kept, or None."""
    try:
        kept = msgspec.json.decode(_place(folder, asked).read_bytes(), type=_Kept)
    except (OSError, msgspec.DecodeError):
        return None
    fields = msgspec.structs.asdict(kept)
    columns = [np.array(fields.pop(name), float) for name in _COLUMNS]
    return Outcome(*columns, **fields)


def save(folder: Path, asked: Asked, outcome: Outcome) -> None:
    """Keep it."""
    fields = {name: getattr(outcome, name) for name in _Kept.__struct_fields__}
    kept = _Kept(**{**fields, **{name: fields[name].tolist() for name in _COLUMNS}})
    with atomic_output(_place(folder, asked)) as place:
        place.write_bytes(msgspec.json.encode(kept))


def _place(folder: Path, asked: Asked) -> Path:
    code = _code("numaplan" in asked[1])
    return folder / (sha256(f"{code}{asked}".encode()).hexdigest()[:32] + ".json")


@cache
def _code(maps: bool) -> str:
    """A digest of the sources that an outcome depends on; maps: the mapper's too."""
    simulator, mapper = (
        Path(str(module.__file__)).parent for module in (benchmarks.simulator, numaplan.mapper)
    )
    sources = [Path(__file__).with_name("experiments.py"), *simulator.glob("*.py")]
    sources += (mapper / "online").rglob("*.py")
    if maps:  # what is behind `map_threads`
        sources += [*(mapper / "threads").rglob("*.py"), *(mapper / "native" / "solver").glob("*.[ch]")]
    digest = sha256()
    for path in sorted(sources):
        digest.update(path.read_bytes())
    return digest.hexdigest()
