"""next-touch.txt, section 4: what migrating pages costs. Figures of real memory systems, so only real ones
count.

In the lab processors are emulated and times mean nothing; on one node there is nowhere to migrate to. On a
machine with several nodes the calls are timed here.
"""

import ctypes
import mmap
import os
from time import perf_counter

import numpy as np

from benchmarks.papers.experiments import Study
from benchmarks.papers.rows import Row
from numaplan.common import NumaplanError
from numaplan.profiler import Machine

PAPER = "next-touch"
MOVE_PAGES, MOVE_FLAG = 279, 2
PAGE = 4096
# call -> (base us, us a page: 2.5 to handle and 4 KiB at 1 GB/s)
PUBLISHED = {"move_pages, base": 72.0, "move_pages, a page": 2.5 + 4.096, "throughput, MB/s": 600.0}
_WHY = "needs two nodes with memory: run on such a machine; emulated time says nothing"


def rows(study: Study) -> list[Row]:
    """The cost of move_pages, or why it was not measured."""
    measured = _measure(max(3, study.seeds)) if os.uname().machine == "x86_64" and _has_nodes() else {}
    found = []
    for name, paper in PUBLISHED.items():
        value = measured.get(name)
        near = value is not None and 0.5 <= value / paper <= 2.0
        verdict = "size" if near else "direction" if value is not None else "no"
        why = "" if near else "newer kernel and memory" if value is not None else _WHY
        found.append(
            Row(
                paper=PAPER,
                table="Section 4.2",
                row=name,
                paper_value=paper,
                verdict=verdict,
                why=why,
                value=None if value is None else round(value, 2),
            )
        )
    return found


def _has_nodes() -> bool:
    try:
        return sum(node.memory_bytes > 0 for node in Machine.load("local").nodes) > 1
    except NumaplanError:
        return False


def _measure(repeats: int) -> dict[str, float]:
    few, many = (min(_migrate(pages) for _ in range(repeats)) for pages in (1, 4096))
    each = (many - few) / 4095
    return {
        "move_pages, base": (few - each) * 1e6,
        "move_pages, a page": each * 1e6,
        "throughput, MB/s": 4096 * PAGE / many / 1e6,
    }


def _migrate(pages: int) -> float:
    """Seconds to move so many touched pages from the node they are on to another."""
    nodes = [node.id for node in Machine.load("local").nodes if node.memory_bytes > 0]
    libc = ctypes.CDLL(None, use_errno=True)
    with mmap.mmap(-1, pages * PAGE) as memory:
        view = np.frombuffer(memory, dtype=np.uint8)
        view[::PAGE] = 1
        addresses = (view.ctypes.data + PAGE * np.arange(pages, dtype=np.uint64)).astype(np.uint64)
        status = np.zeros(pages, dtype=np.int32)

        def call(target: np.ndarray[tuple[int], np.dtype[np.int32]] | None) -> None:
            goal = None if target is None else ctypes.c_void_p(target.ctypes.data)
            libc.syscall(
                MOVE_PAGES,
                0,
                ctypes.c_ulong(pages),
                ctypes.c_void_p(addresses.ctypes.data),
                goal,
                ctypes.c_void_p(status.ctypes.data),
                MOVE_FLAG,
            )

        call(None)
        goal = np.full(pages, next(node for node in nodes if node != status[0]), dtype=np.int32)
        start = perf_counter()
        call(goal)
        seconds = perf_counter() - start
        del view
    return seconds
