"""What became of a stored plan: how often it was applied, how well the last time, whether it still fits."""

import time
from contextlib import suppress

import msgspec

from numaplan.common import BAD_JSON, NumaplanError

from .places import Place

SCHEMA = "numaplan/used/1"
LIMIT = 64 << 10
STALE_AFTER = 3  # runs one after the other of which the plan names most things in vain
_LONGEST = 300  # characters of a summary


class Use(msgspec.Struct, frozen=True):
    """One run with a plan, that ended well. threads: as planned, of those planned; regions: seen, of those
    planned; fits: whether most of both appeared; summary: what was said of it."""

    threads: tuple[int, int]
    regions: tuple[int, int]
    fits: bool
    summary: str


class Note(msgspec.Struct, frozen=True):
    """The uses of a plan. plan: digest of its text (of another plan there is nothing to say); last: when it
    was applied last; unfit: so many runs in a row it did not fit, unfit_since: the first of them; times are
    seconds since 1970.
    """

    schema: str = SCHEMA
    plan: str = ""
    applied: int = 0
    last: float = 0.0
    use: Use | None = None
    unfit: int = 0
    unfit_since: float = 0.0

    @property
    def stale(self) -> bool:
        """Whether the plan is for something that the program is no longer."""
        return self.unfit >= STALE_AFTER

    def after(self, use: Use, now: float) -> "Note":
        """The note with one more run."""
        unfit = 0 if use.fits else self.unfit + 1
        since = 0.0 if use.fits else self.unfit_since or now
        use = msgspec.structs.replace(use, summary=use.summary[:_LONGEST])
        return Note(SCHEMA, self.plan, self.applied + 1, now, use, unfit, since)


def read_note(place: Place, parts: tuple[str, ...], digest: str) -> Note:
    """The note of the plan with this digest; an empty one where there is none that can be read."""
    fresh = Note(plan=digest)
    if not place.keeps_notes:
        return fresh
    with suppress(NumaplanError, OSError, *BAD_JSON):
        note = msgspec.json.decode(place.read(_beside(parts), LIMIT)[0], type=Note)
        if note.schema == SCHEMA and note.plan == digest:
            return note
    return fresh


def add_use(place: Place, parts: tuple[str, ...], digest: str, use: Use) -> None:
    """Note one more run with a plan; nothing where the store cannot be written (others', read-only)."""
    if place.keeps_notes:
        note = read_note(place, parts, digest).after(use, time.time())
        with suppress(NumaplanError, OSError):
            place.write(_beside(parts), msgspec.json.encode(note))


def drop_note(place: Place, parts: tuple[str, ...]) -> None:
    """Take a plan's note away."""
    if place.keeps_notes:
        with suppress(NumaplanError, OSError):
            place.remove(_beside(parts))


def _beside(parts: tuple[str, ...]) -> tuple[str, ...]:
    return (*parts[:-1], f"{parts[-1]}.used")
