"""Outcomes on disk: a run of hours that was broken off goes on from there.

One file a simulation, named by what was asked (experiment, configuration, seed) and the code that answered:
after a change of simulator, policies or mapper nothing old is taken.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np

import benchmarks.simulator
import numaplan.launcher
import numaplan.mapper
from benchmarks.simulator.run import Outcome
from numaplan.common import atomic_output

_COLUMNS = ("ends", "starts", "ran_s")


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


def load(folder: Path, asked: str) -> Outcome | None:
    """The outcome that was kept, or None."""
    try:
        kept = msgspec.json.decode(_place(folder, asked).read_bytes(), type=_Kept)
    except (OSError, msgspec.DecodeError):
        return None
    fields = msgspec.structs.asdict(kept)
    columns = [np.array(fields.pop(name), float) for name in _COLUMNS]
    return Outcome(*columns, **fields)


def save(folder: Path, asked: str, outcome: Outcome) -> None:
    """Keep it."""
    fields = {name: getattr(outcome, name) for name in _Kept.__struct_fields__}
    kept = _Kept(**{**fields, **{name: fields[name].tolist() for name in _COLUMNS}})
    with atomic_output(_place(folder, asked)) as place:
        place.write_bytes(msgspec.json.encode(kept))


def _place(folder: Path, asked: str) -> Path:
    return folder / (sha256(f"{_code()}{asked}".encode()).hexdigest()[:32] + ".json")


@cache
def _code() -> str:
    """A digest of the sources that an outcome depends on."""
    digest = sha256()
    launcher = Path(str(numaplan.launcher.__file__)).parent / "online"
    for module, kinds in ((benchmarks.simulator, ("*.py",)), (numaplan.mapper, ("*.py", "*.[ch]"))):
        folder = Path(str(module.__file__)).parent
        for path in sorted(path for kind in kinds for path in folder.rglob(kind)):
            digest.update(path.read_bytes())
    digest.update(Path(__file__).with_name("experiments.py").read_bytes())
    for path in sorted([*launcher.glob("*.py"), *(launcher / "policies").glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()
