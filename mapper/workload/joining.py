"""Memory of several recordings as one: side by side, with threads numbered anew."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from numaplan.analyzer import BY_PAIRS, PageCounts


def renumbered(stats: PageCounts, rows: Sequence[int]) -> PageCounts:
    """The same with thread i as thread rows[i]."""
    index = np.append(np.asarray(rows, dtype=np.int64), -1)  # the last is that of -1
    size = max(rows, default=-1) + 1
    apart = {name: np.zeros((size, size)) for name in BY_PAIRS}
    for name, matrix in apart.items():
        if getattr(stats, name) is not None:
            matrix[np.ix_(rows, rows)] = getattr(stats, name)
    toucher = None if stats.toucher is None else index[stats.toucher]
    return replace(stats, thread=index[stats.thread], toucher=toucher, **apart)


def together(stats: Sequence[PageCounts], threads: int) -> PageCounts:
    """Memory of several recordings of other processes side by side; phases are those of a single one."""
    apart: dict[str, Any] = {name: np.zeros((threads, threads)) for name in BY_PAIRS}
    for name, matrix in apart.items():
        for own in (getattr(part, name) for part in stats):
            if own is not None:
                matrix[: len(own), : len(own)] += own
    if len(stats) == 1:
        return replace(stats[0], **apart)
    missed = ("missed", "missed_before") if all(part.missed is not None for part in stats) else ()
    shifts = np.cumsum([0, *(len(part.regions) for part in stats)])

    def joined(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in stats])

    return PageCounts(
        regions=[key for part in stats for key in part.regions],
        sources={key: name for part in stats for key, name in part.sources.items()},
        region=np.concatenate([part.region + shift for part, shift in zip(stats, shifts, strict=False)]),
        page=joined("page"),
        thread=joined("thread"),
        accesses=joined("accesses"),
        writes=joined("writes"),
        toucher=joined("toucher"),
        before=joined("before"),
        period=stats[0].period,
        exact=all(part.exact for part in stats),
        lives=joined("lives"),
        **{name: joined(name) for name in missed},
        **apart,
    )
