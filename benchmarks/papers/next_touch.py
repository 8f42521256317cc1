"""[NEXT-TOUCH], 4.2: what marking and migrating pages costs.

Measured by `benchmarks.launcher.next_touch`: here on a machine with several nodes of memory, else in the lab,
whose processors are emulated: there the ratios say how much the kernel and the library have to do, and times
say nothing. So the paper's times are compared on real machines alone, its ratios everywhere.
"""

from typing import Any

from benchmarks.launcher import next_touch
from benchmarks.papers.measured import Study
from benchmarks.papers.rows import Row
from numaplan.common import NumaplanError

PAPER, TABLE = "next-touch", "Section 4.2"
PAGES = 4096  # of the largest run; more takes the lab long
_SIGNAL = (
    "each touch is a signal, two changes of rights and a call of move_pages; theirs is in the kernel's fault"
)
_BASE_DEAR = "emptying the lists of all cpus takes interrupts, which are dear between emulated cpus"
_BASE_CHEAP = "moving a page is dear beside it on emulated cpus"
# what, over what: columns of the benchmark; the paper's ratio; why ours may differ
RATIOS = {
    "marking a page over moving it on touch": (
        ("mark", "touch_by_page"),
        next_touch.PAPER["mark_of_touch"],
        "ours marks whole ranges at once, theirs each page; and a touch costs us more",
    ),
    "marking a page over moving it on touch, by granule": (
        ("mark", "touch_by_granule"),
        next_touch.PAPER["mark_of_touch"],
        "ours marks whole ranges at once, theirs each page",
    ),
    "moving a page on touch over move_pages": (
        ("touch_by_page", "move_pages"),
        next_touch.PAPER["touch_of_move_pages"],
        _SIGNAL,
    ),
    "moving a page on touch over move_pages, by granule": (
        ("touch_by_granule", "move_pages"),
        next_touch.PAPER["touch_of_move_pages"],
        _SIGNAL,
    ),
}
BASE = "base cost of move_pages, in pages moved"
# what -> us: 72 us, and 2.5 us a page with 4 KiB at 1 GB/s
TIMES = {
    "move_pages, base, us": next_touch.PAPER_BASE / 1e3,
    "move_pages, a page, us": next_touch.PAPER_MOVE / 1e3,
    "moved on touch, a page, us": next_touch.PAPER_TOUCH / 1e3,
}
_EMULATED = "needs memory of two real nodes: emulated time says nothing"


def rows(study: Study) -> list[Row]:
    """The ratios, and the times where memory is real; study: not asked, nothing here is random."""
    del study
    try:
        measured = next_touch.run(PAGES)
    except NumaplanError as error:
        return [_row(name, paper, None, str(error)) for name, paper in _expected()]
    return made(measured)


def made(measured: dict[str, Any]) -> list[Row]:
    """Rows of what `benchmarks.launcher.next_touch.run` measured."""
    where, each = measured["where"], measured["ns_a_page"]
    few, many = (each[str(pages)] for pages in (min(map(int, each)), max(map(int, each))))
    found = [
        _row(f"{about} ({where})", paper, many[one] / many[other], why)
        for about, ((one, other), paper, why) in RATIOS.items()
    ]
    base = few["move_pages"] / many["move_pages"]
    expected = next_touch.PAPER["move_pages_base_in_pages"]
    found.append(_row(f"{BASE} ({where})", expected, base, _BASE_DEAR if base > expected else _BASE_CHEAP))
    times = (few["move_pages"] - many["move_pages"], many["move_pages"], many["touch_by_page"])
    for (name, paper), nanoseconds in zip(TIMES.items(), times, strict=True):
        real = where == "here"
        found.append(
            _row(name, paper, nanoseconds / 1e3 if real else None, "another machine" if real else _EMULATED)
        )
    return found


def _expected() -> list[tuple[str, float]]:
    ratios = [(about, paper) for about, (_, paper, _) in RATIOS.items()]
    return [*ratios, (BASE, next_touch.PAPER["move_pages_base_in_pages"]), *TIMES.items()]


def _row(name: str, paper: float, value: float | None, why: str) -> Row:
    """In size within a factor of two, in direction on the same side of 1 (a time: within ten)."""
    near = value is not None and 0.5 <= value / paper <= 2.0
    same = value is not None and ((value - 1.0) * (paper - 1.0) > 0 or 0.1 <= value / paper <= 10.0)
    return Row(
        paper=PAPER,
        table=TABLE,
        row=name,
        paper_value=round(paper, 4),
        value=None if value is None else round(value, 4),
        verdict="size" if near else "direction" if same else "no",
        why="" if near else why,
    )
