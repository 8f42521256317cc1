"""What is worth saying of where a plan puts pages."""

import re

from numaplan.machine import Machine

from ..memory.capacity import faster_memory_note
from ..memory.pages import PagePlan

# Their own tables and heaps, which no program that they run or serve can mark.
_RUNTIMES = re.compile(
    r"(libjvm|libart|libcoreclr|libclr|libmono|libnode|libpython|libruby|libphp|libgomp|libi?omp|libtbb|libc\."
    r"|ld-)[^:+]*[:+]"
)


def page_notes(pages: PagePlan, machine: Machine, *, next_touch: bool) -> list[str]:
    """Sentences for people; next_touch: whether memory is left to who touches it next."""
    return [*_changing(pages, next_touch), *faster_memory_note(pages.traffic, machine), *_left_out(pages)]


def _changing(pages: PagePlan, next_touch: bool) -> list[str]:
    """Memory whose users change during the run: what moving it along is worth, and who can."""
    along = "moving it with them makes" if next_touch else "--next-touch would make"
    markable = [(key, gain) for key, gain in pages.changing if not _RUNTIMES.match(key.name)]
    own = "marking it for next touch as they do (numaplan.h) would make"
    return [
        f"{key.kind} {key.name}: its users change from {at}; {words} {gain:.0%} more of its accesses local"
        for found, at, words in (
            (pages.moving, "one team of threads to the next", along),
            (markable, "phase to phase", own),
        )
        for key, gain in found[:3]
    ]


def _left_out(pages: PagePlan) -> list[str]:
    """What the plan does not list."""
    if not pages.left:
        return []
    from numaplan.analyzer import in_bytes

    size = in_bytes(sum(key.bytes for key in pages.left))
    if len(pages.left) == 1:
        return [f"1 small region of a library, {size}, is as good where it is touched first: not in the plan"]
    what = f"{len(pages.left)} small regions of libraries, {size}, are"
    return [f"{what} as good where they are touched first: not in the plan"]
