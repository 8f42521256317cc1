"""Leave out samples of code that is not the program's: the loader, thread runtimes, our preload library."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler.identity import Identity, ModuleRecord, read_identity

# Loaders and thread runtimes: what they touch, they touch for themselves (start-up, spinning, task queues).
_RUNTIME = re.compile(r"(ld[-.]|ld-linux|ld-musl|libgomp|libomp|libiomp5|libpthread)[^/]*")
# glibc holds the thread library since 2.34; of it, these functions are the runtime's.
_LIBC = re.compile(r"libc[.-][^/]*")
_THREAD_FUNCTION = re.compile(r"(__)?pthread_|sem_|thrd_|mtx_|cnd_|__libc_start")
_NATIVE = Path(__file__).resolve().parent.parent / "native"
_EXECUTABLE = 1
_LONGEST_FUNCTION = 1 << 16

Range = tuple[int, int]
Filter = Callable[[int, NDArray[np.uint64]], NDArray[np.bool_] | None]


def is_dropped(module: ModuleRecord, drop_runtime: bool) -> bool:
    """Whether samples of all of this module's code are left out; those of our own library always are."""
    if Path(module.path).resolve().parent == _NATIVE:
        return True
    return drop_runtime and not module.is_executable and _RUNTIME.fullmatch(module.name) is not None


@lru_cache(maxsize=64)
def thread_functions(path: str) -> tuple[Range, ...]:
    """(start, end) in the file's addresses of the thread library's exported functions; () if unreadable."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    try:
        with Path(path).open("rb") as file:
            table = ELFFile(file).get_section_by_name(".dynsym")
            if not isinstance(table, SymbolTableSection):
                return ()
            return tuple(
                (symbol["st_value"], symbol["st_value"] + symbol["st_size"])
                for symbol in table.iter_symbols()
                if _THREAD_FUNCTION.match(symbol.name)
                and symbol["st_info"]["type"] == "STT_FUNC"
                and symbol["st_value"]
                and 0 < symbol["st_size"] < _LONGEST_FUNCTION
            )
    except Exception:  # elftools raises whatever a damaged file makes of it; nothing is dropped then
        return ()


def dropped_ranges(module: ModuleRecord, drop_runtime: bool) -> Iterator[Range]:
    """The (start, end) of code in memory whose samples are left out."""
    if is_dropped(module, drop_runtime):
        for segment in module.segments:
            if segment.flags & _EXECUTABLE:
                yield segment.start_addr, segment.start_addr + segment.bytes
    elif drop_runtime and not module.is_executable and _LIBC.fullmatch(module.name):
        for start, end in thread_functions(module.path):
            yield start + module.bias, end + module.bias


def _table(ranges: list[Range]) -> NDArray[np.uint64]:
    """(n, 2) ranges in order, overlapping ones joined: exported functions may be aliases of one another."""
    joined: list[Range] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return np.array(joined, np.uint64).reshape(-1, 2)


def identity_in(workdir: Path) -> Identity:
    """What the preload library logged in a recording's folder."""
    folder = workdir / "identity"
    return read_identity(folder if folder.is_dir() else workdir)


def runtime_filter(identity: Identity, drop_runtime: bool) -> Filter:
    """A filter by instruction address, from the modules of the recorded processes.

    Where none are known (static programs, other architectures) everything stays.
    """
    ranges: dict[int, list[Range]] = {}
    for module in identity.modules:
        ranges.setdefault(module.pid, []).extend(dropped_ranges(module, drop_runtime))
    tables = {pid: _table(pairs) for pid, pairs in ranges.items() if pairs}

    def keep(pid: int, ip: NDArray[np.uint64]) -> NDArray[np.bool_] | None:
        table = tables.get(pid)
        if table is None:
            return None
        place = np.searchsorted(table[:, 0], ip, side="right") - 1
        inside = (place >= 0) & (ip < table[np.maximum(place, 0), 1])
        return np.asarray(~inside)

    return keep
