"""What was recorded, in a few lines, and whether it is enough for a plan."""

from collections.abc import Iterable
from pathlib import Path

from numaplan.common import counted

from ..trace.description import sample_counts
from ..trace.reader import Trace

# With so many samples at a period of 1000 the plans of 8 to 32 threads came within a few per cent of those
# from every access; beyond that the pairs to tell apart grow with the threads.
WANTED = 100_000
_WANTED_FOR = 32
_MOST_THREADS = 8
_FIRST_TOUCHES = (
    "warning: page faults only, which show who touches memory first, not who shares it:"
    " no plan is made of them; record with 'perf mem record'"
)


def wanted_samples(threads: int) -> int:
    """How many samples a plan for so many threads wants; 0 for one thread, which has nobody to talk to."""
    return WANTED * max(threads, _WANTED_FOR) // _WANTED_FOR if threads > 1 else 0


def summarise(path: Path) -> list[str]:
    """Lines for people: samples by event, level and thread; warnings: the recorder's, and if they are few."""
    with Trace.open(path) as trace:
        events, levels = sample_counts(trace, "event"), sample_counts(trace, "level")
        threads = trace.rows(
            "SELECT t.process || ':' || t.path, count(*) AS n FROM samples s JOIN threads t USING (thread)"
            " GROUP BY t.thread, 1 ORDER BY n DESC, t.thread"
        )
        meta = trace.meta
    total = sum(events.values())
    named = threads[:_MOST_THREADS]
    more = len(threads) - len(named)
    lines = [
        f"events: {_shares(events.items(), total)}",
        f"levels: {_shares(levels.items(), total)}",
        f"threads: {_shares(named, total)}{f' and {more} more' if more else ''}",
    ]
    warnings = [f"warning: {meta['warnings']}"] if meta.get("warnings") else []
    few = _FIRST_TOUCHES if _is_of_faults(meta, events) else too_few(total, len(threads), meta)
    return [*lines, *warnings, *([few] if few else [])]


def too_few(samples: int, threads: int, meta: dict[str, str]) -> str:
    """A warning when samples are too few for so many threads, with what would give enough; else empty.

    meta: the trace's facts (`backend`, `period`, `freq`).
    """
    wanted = wanted_samples(threads)
    if samples >= wanted or not samples:
        return ""
    few = f"warning: {samples:,} samples are few for {counted(threads, 'thread')} ({wanted:,} wanted)"
    if meta.get("backend") == "faults":
        return f"{few}: page faults cannot be sampled more often; see 'nprof doctor' for other backends"
    freq, period = int(meta.get("freq", "0")), int(meta.get("period", "0"))
    if freq:
        return f"{few}: record with --freq {freq * wanted // samples + 1}"
    if period > 1 and samples * period >= wanted:
        return f"{few}: record with --period {_rounded(period * samples // wanted)}"
    all_of_them = " with --period 1" if period > 1 else ""
    return f"{few}: record a longer run{all_of_them}"


def _is_of_faults(meta: dict[str, str], events: Iterable[str]) -> bool:
    """Whether a recording from elsewhere has page faults only; here, the choice of a backend says so."""
    return meta.get("backend") == "import" and {*events} == {"fault"}


def _rounded(period: int) -> int:
    """The period with two digits that count, rounded down; at least 1."""
    unit = int(10 ** max(len(str(period)) - 2, 0))
    return max(period // unit * unit, 1)


def _shares(counts: Iterable[tuple[str, int]], total: int) -> str:
    return ", ".join(f"{name} {count / total:.1%}" for name, count in counts)
