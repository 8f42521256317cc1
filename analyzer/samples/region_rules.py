"""Which samples are evidence of communication, by their address; and addresses made distinct by process."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import Trace

from .shared_pages import physical_keys, shared_pages

Columns = dict[str, NDArray[Any]]
PRIVATE_KINDS = ("stack", "tls", "text")
OUR_LIBRARY = "preload.so"  # what recorded programs are made to load
# Threads that wait for each other in these exchange no data of the program.
RUNTIMES = (
    "libgomp.so",
    "libomp.so",
    "libiomp",
    "libpthread",
    "ld-linux",
    "ld-2",
    OUR_LIBRARY,
    "enforce.so",
)
# These too, by their own variables; their instructions copy the program's data as well.
C_LIBRARIES = ("libc.so", "libc-2", "libc.musl", "ld-musl")
PROCESS_SHIFT = 48  # user addresses lie below; above it stands the process


class RegionRules:
    """Which samples to leave out by their region or instruction, and what to add to an address as its key.

    process: (threads,) number of each thread's process; private: (regions + 1,) whether memory of a region is
    evidence of no communication, the last entry for memory of no region; runtimes: the same where each access
    was seen, of which a stack's tell as much as others: whether memory is instructions, or the variables of a
    threading runtime or C library.
    """

    def __init__(self, trace: Trace, threads: int) -> None:
        names: dict[str, int] = {}
        self.process = np.zeros(threads, np.uint64)
        for thread in trace.thread_rows:
            self.process[thread.thread] = names.setdefault(thread.process, len(names))
        self._several = len(names) > 1
        self._pages = shared_pages(trace) if self._several else np.empty(0, np.uint64)
        size = 1 + max((row.region for row in trace.region_rows), default=-1)
        self.private = np.zeros(size + 1, bool)  # the last entry is that of region -1
        self.runtimes = np.zeros(size + 1, bool)
        self._offset = np.zeros(size + 1, np.uint64)
        self._moved = np.zeros(size + 1, bool)
        self._runtime: list[tuple[int, int, int]] = []
        shared_files: dict[tuple[str, int], int] = {}
        for row in trace.region_rows:
            module, start = row.name.partition(":")[0], row.start_addr
            runtime = module.startswith(RUNTIMES)
            apart = runtime or module.startswith(C_LIBRARIES)
            self.runtimes[row.region] = apart or row.kind == "text"
            self.private[row.region] = apart or row.kind in PRIVATE_KINDS
            number = names.get(row.process, 0)
            if row.kind == "text" and runtime:
                self._runtime.append((number, start, start + row.bytes))
            if row.kind == "file":
                # One file in several processes is one memory: all take the address of the first.
                home = shared_files.setdefault((row.name, row.bytes), (number << PROCESS_SHIFT) + start)
                self._offset[row.region] = (home - start) % (1 << 64)
                self._moved[row.region] = True

    @property
    def columns(self) -> tuple[str, ...]:
        """What `apply` wants beside the usual columns."""
        return ("phys_addr",) if len(self._pages) else ()

    def apply(self, columns: Columns) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """(key, whether it may be communication) of each sample."""
        region, addr = columns["region"], columns["addr"]
        known = len(self.private) - 1
        if len(region) and (int(region.max()) >= known or int(region.min()) < -1):
            region = np.where((region >= 0) & (region < known), region, -1)
        usable = ~self.private[region] & (addr != 0)
        for number, start, end in self._runtime:
            inside = (columns["ip"] >= np.uint64(start)) & (columns["ip"] < np.uint64(end))
            if self._several:
                inside &= self.process[columns["thread"]] == np.uint64(number)
            usable &= ~inside
        if not (self._several or self._moved.any()):
            return addr, usable
        shift = self.process[columns["thread"]] << np.uint64(PROCESS_SHIFT)
        key = addr + np.where(self._moved[region], self._offset[region], shift)
        if len(self._pages):
            physical = physical_keys(self._pages, columns["phys_addr"])
            key = np.where(physical > 0, physical, key)
        return key, usable
