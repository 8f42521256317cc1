"""Leave out samples of code that is not the program's: the loader, thread runtimes, our preload library."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler.identity import ModuleRecord, read_identity

# Loaders and thread runtimes: what they touch, they touch for themselves (start-up, spinning, task queues).
_RUNTIME = re.compile(r"(ld[-.]|ld-linux|ld-musl|libgomp|libomp|libiomp5|libpthread)[^/]*")
_NATIVE = Path(__file__).resolve().parent.parent / "native"
_EXECUTABLE = 1

Filter = Callable[[int, NDArray[np.uint64]], NDArray[np.bool_] | None]


def is_dropped(module: ModuleRecord, drop_runtime: bool) -> bool:
    """Whether samples of this module's code are left out; those of our own library always are."""
    if Path(module.path).resolve().parent == _NATIVE:
        return True
    return drop_runtime and not module.is_executable and _RUNTIME.fullmatch(module.name) is not None


def runtime_filter(workdir: Path, drop_runtime: bool) -> Filter:
    """A filter by instruction address, from the modules that the preload library logged in `workdir`.

    Where it logged none (static programs, other architectures) everything stays.
    """
    folder = workdir / "identity"
    identity = read_identity(folder if folder.is_dir() else workdir)
    ranges: dict[int, list[tuple[int, int]]] = {}
    for module in identity.modules:
        if is_dropped(module, drop_runtime):
            ranges.setdefault(module.pid, []).extend(
                (segment.start_addr, segment.start_addr + segment.bytes)
                for segment in module.segments
                if segment.flags & _EXECUTABLE
            )
    tables = {pid: np.array(sorted(pairs), np.uint64).reshape(-1, 2) for pid, pairs in ranges.items()}

    def keep(pid: int, ip: NDArray[np.uint64]) -> NDArray[np.bool_] | None:
        table = tables.get(pid)
        if table is None or not len(table):
            return None
        place = np.searchsorted(table[:, 0], ip, side="right") - 1
        inside = (place >= 0) & (ip < table[np.maximum(place, 0), 1])
        return np.asarray(~inside)

    return keep
