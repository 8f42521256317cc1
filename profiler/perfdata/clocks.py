"""The clocks of recordings, and the wall clock where perf noted both (`perf record -k`)."""

from collections.abc import Sequence

from .decoded import Decoded

_MOST_NS = 1 << 62  # farther apart no two clocks are


def wall_clock(facts: Decoded) -> int | None:
    """How many ns the wall clock is ahead of the recording's; None where the file does not say."""
    noted = facts.header.get("clock_data")
    if not noted or noted["clockid"] != facts.header.get("clockid", noted["clockid"]):
        return None
    ahead = int(noted["wall_clock_ns"]) - int(noted["clockid_ns"])
    return ahead if abs(ahead) < _MOST_NS else None


def shifts(parts: Sequence[Decoded]) -> tuple[list[int], tuple[str, ...]]:
    """What to add to each recording's times to bring all on one clock, and warnings.

    Recordings of one machine on one clock are left alone; others are put on the wall clock.
    """
    clocks = {(part.header.get("clockid"), part.header.get("hostname")) for part in parts}
    if len(clocks) <= 1:
        return [0] * len(parts), ()
    ahead = [wall_clock(part) for part in parts]
    known = [one for one in ahead if one is not None]
    if len(known) < len(parts):
        return [0] * len(parts), (
            "the files' clocks differ and do not say how: times of one cannot be compared with another's",
        )
    return known, ()
