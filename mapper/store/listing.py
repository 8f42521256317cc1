"""What a store holds, row by row, and the rows that people mean."""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from numaplan.common import BAD_JSON, NumaplanError, UsageError, shell_line

from ..plan_file.parts import PlanApp
from ..plan_file.plan import SCHEMA as PLAN_SCHEMA
from .notes import Note, read_note
from .store import ENDING, Parts, PlanStore

SCHEMA = "numaplan/store/1"
_MOST = 1_000_000
_DAY = 86400.0


class StoredRow(msgspec.Struct, frozen=True):
    """A stored plan. stored: seconds since 1970; refused: why it is never used, empty when it may be."""

    parts: Parts
    argv: tuple[str, ...] = ()
    threads: int = 0
    machine: str = ""
    stored: float = 0.0
    note: Note = Note()
    refused: str = ""

    @property
    def key(self) -> str:
        """Its whole name."""
        return "/".join(self.parts)

    @property
    def program(self) -> str:
        """The command line that it was made from."""
        return shell_line(self.argv)

    @property
    def state(self) -> str:
        """ok, unused, stale or refused."""
        if self.refused:
            return "refused"
        return "stale" if self.note.stale else "ok" if self.note.applied else "unused"


class _Machine(msgspec.Struct):
    name: str = ""


class _Head(msgspec.Struct):
    """As much of a plan as a row shows."""

    app: PlanApp
    machine: _Machine
    schema: str = ""


def rows_of(store: PlanStore, refused: list[str] | None = None) -> list[StoredRow]:
    """Everything in a store, programs with the newest plans first.

    refused: gets why a folder cannot be trusted or read; of what is in it there are no rows.
    """
    rows = [_row(store, parts) for parts in _all_parts(store, [] if refused is None else refused)]
    newest: dict[str, float] = {}
    for row in rows:
        newest[row.parts[0]] = max(row.stored, newest.get(row.parts[0], 0.0))
    return sorted(rows, key=lambda row: (-newest[row.parts[0]], row.parts[0], -row.stored, row.key))


def _all_parts(store: PlanStore, refused: list[str]) -> Iterator[Parts]:
    for build in store.place.names((), _MOST):
        for machine in _names(store, refused, build):
            for name in _names(store, refused, build, machine):
                if name.endswith(ENDING):
                    yield build, machine, name.removesuffix(ENDING)


def _names(store: PlanStore, refused: list[str], *folder: str) -> list[str]:
    """What is in a folder that may be trusted; of another one nothing is listed, but why."""
    try:
        return sorted(store.place.names(folder, _MOST))
    except NumaplanError as error:
        refused.append(error.what)
        return []


def _row(store: PlanStore, parts: Parts) -> StoredRow:
    import hashlib

    try:
        data, stored = store.read(parts)
        head = msgspec.json.decode(data, type=_Head)
    except (NumaplanError, OSError) as error:
        return StoredRow(parts, refused=getattr(error, "what", "") or str(error))
    except BAD_JSON:
        return StoredRow(parts, refused=f"{store.where(parts)}: is no plan")
    if head.schema != PLAN_SCHEMA:
        return StoredRow(parts, refused=f"{store.where(parts)}: is no plan of this version")
    note = read_note(store.place, parts, hashlib.sha256(data).hexdigest())
    return StoredRow(parts, head.app.argv, head.app.threads, head.machine.name, stored, note)


def chosen(rows: Sequence[StoredRow], words: Sequence[str]) -> list[StoredRow]:
    """The rows that these words name: the class, or the beginning of the key, as far as it tells them apart.

    Raises UsageError for a word that names none, or several.
    """
    found: list[StoredRow] = []
    for word in words:
        named = [row for row in rows if word and (row.parts[2] == word or row.key.startswith(word))]
        named = named or [row for row in rows if word and row.parts[2].startswith(word)]
        if len(named) != 1:
            what = "names no stored plan" if not named else f"names {len(named)} stored plans"
            raise UsageError(f"{word[:200]}: {what}", "take a key of 'nmap store list'")
        found += named
    return found


def older_than(rows: Sequence[StoredRow], days: float) -> list[StoredRow]:
    """Those that were neither stored nor applied for so long; none of which it is not known since when."""
    limit = time.time() - days * _DAY
    return [row for row in rows if 0 < max(row.stored, row.note.last) < limit]


def document(store: PlanStore, rows: Sequence[StoredRow], refused: Sequence[str]) -> bytes:
    """The same as JSON (schema numaplan/store/1)."""
    return msgspec.json.encode(
        {
            "schema": SCHEMA,
            "store": store.place.label,
            "plans": [_entry(store, row) for row in rows],
            "refused_folders": refused,
        }
    )


def _entry(store: PlanStore, row: StoredRow) -> dict[str, object]:
    note, use = row.note, row.note.use
    return {
        "key": row.key,
        "build": row.parts[0],
        "machine": row.parts[1],
        "class": row.parts[2],
        "file": store.where(row.parts),
        "argv": row.argv,
        "threads": row.threads,
        "machine_name": row.machine,
        "stored": moment(row.stored),
        "state": row.state,
        "refused": row.refused,
        "applied": note.applied,
        "last_applied": moment(note.last),
        "last": use and msgspec.to_builtins(use),
        "stale_since": moment(note.unfit_since) if note.stale else "",
    }


def moment(seconds: float) -> str:
    """A time as ISO 8601 has it, in UTC; empty for none."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds > 0 else ""
