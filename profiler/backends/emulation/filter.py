"""Leave out samples of code that is not the program's: the loader, thread runtimes, our preload library."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.common import native_part

from ...identity.records import Identity, ModuleRecord
from ...messages.building import LIBRARY as MESSAGES_LIBRARY
from .spool import ProcessSpool

# Loaders and thread runtimes: what they touch, they touch for themselves (start-up, spinning, task queues).
_RUNTIME = re.compile(r"(ld[-.]|ld-linux|ld-musl|libgomp|libomp|libiomp5|libpthread)[^/]*")
# glibc holds the thread library since 2.34; of it, these functions are the runtime's.
_LIBC = re.compile(r"libc[.-][^/]*")
_THREAD_FUNCTION = re.compile(r"(__)?pthread_|sem_|thrd_|mtx_|cnd_|__libc_start")
_NATIVE = native_part("profiler", "")
_EXECUTABLE = 1
_LONGEST_FUNCTION = 1 << 16

Range = tuple[int, int]
Addresses = NDArray[np.uint64]
SampleFilter = Callable[[ProcessSpool, Addresses, Addresses], NDArray[np.bool_] | None]


def is_ours(module: ModuleRecord) -> bool:
    """Whether it is our own library: neither its code nor its variables are of the program."""
    return Path(module.path).resolve().parent == _NATIVE or module.name == MESSAGES_LIBRARY


def is_dropped(module: ModuleRecord, drop_runtime: bool) -> bool:
    """Whether samples of all of this module's code are left out; those of our own library always are."""
    if is_ours(module):
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


def own_ranges(module: ModuleRecord) -> Iterator[Range]:
    """The (start, end) of memory to which accesses are left out, whoever makes them: libc fills ours, too."""
    if is_ours(module):
        for segment in module.segments:
            yield segment.start_addr, segment.start_addr + segment.bytes


def runtime_code(library: Path) -> list[Range]:
    """The (start, end) in a library's file of code that is left out; nothing where it is no runtime's."""
    from elftools.elf.elffile import ELFFile

    whole = library.parent.resolve() == _NATIVE or _RUNTIME.fullmatch(library.name) is not None
    if not (whole or _LIBC.fullmatch(library.name)):
        return []
    try:
        with library.open("rb") as file:
            loaded = [
                (int(one["p_vaddr"]), int(one["p_offset"]), int(one["p_filesz"]))
                for one in ELFFile(file).iter_segments("PT_LOAD")
                if one["p_flags"] & _EXECUTABLE
            ]
    except Exception:  # as above
        return []
    if whole:
        return [(offset, offset + size) for _, offset, size in loaded]
    return [
        (start - first + offset, end - first + offset)
        for start, end in thread_functions(str(library))
        for first, offset, size in loaded
        if first <= start < first + size
    ]


def _table(ranges: list[Range]) -> NDArray[np.uint64]:
    """(n, 2) ranges in order, overlapping ones joined: exported functions may be aliases of one another."""
    joined: list[Range] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return np.array(joined, np.uint64).reshape(-1, 2)


def runtime_filter(identity: Identity, processes: Sequence[ProcessSpool], drop_runtime: bool) -> SampleFilter:
    """A filter by the addresses of instructions and of what they access, from each image's modules.

    processes: by start; times of both by the host's clock. Where no modules are known (static programs, other
    architectures) everything stays; a forked process that logged none has those of the image it came from.
    """
    known = _modules_by_image(identity.modules, processes)
    tables: dict[tuple[int, int], tuple[Addresses, Addresses]] = {}
    for process in processes:
        key = process.pid, process.start_ns
        if key in known:
            code = [pair for module in known[key] for pair in dropped_ranges(module, drop_runtime)]
            own = [pair for module in known[key] for pair in own_ranges(module)]
            tables[key] = _table(code), _table(own)
        elif process.origin in tables:
            tables[key] = tables[process.origin]

    def keep(process: ProcessSpool, ip: Addresses, addr: Addresses) -> NDArray[np.bool_] | None:
        found = tables.get((process.pid, process.start_ns))
        return None if found is None else ~(_inside(found[0], ip) | _inside(found[1], addr))

    return keep


def _modules_by_image(
    modules: Sequence[ModuleRecord], processes: Sequence[ProcessSpool]
) -> dict[tuple[int, int], list[ModuleRecord]]:
    """The modules of each image, by its pid and start; an exec loads others where the last image had some."""
    starts: dict[int, list[int]] = {}
    for process in processes:
        starts.setdefault(process.pid, []).append(process.start_ns)
    found: dict[tuple[int, int], list[ModuleRecord]] = {}
    for module in modules:
        if begun := starts.get(module.pid):
            start = begun[max(bisect_right(begun, module.start_ns) - 1, 0)]
            found.setdefault((module.pid, start), []).append(module)
    return found


def _inside(table: Addresses, address: Addresses) -> NDArray[np.bool_]:
    """Which addresses lie in a range of a `_table`."""
    if not len(table):
        return np.zeros(len(address), np.bool_)
    place = np.searchsorted(table[:, 0], address, side="right") - 1
    inside: NDArray[np.bool_] = (place >= 0) & (address < table[np.maximum(place, 0), 1])
    return inside
