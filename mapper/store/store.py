"""The store of plans: `BUILD/MACHINE/CLASS.json` below a folder or an address.

A look-up is by name. Only where nothing is stored for the class of a run, its build's other plans are looked
at, which are few: never all that is stored.
"""

import hashlib
import re
import time
from collections.abc import Callable, Iterator

import msgspec

from numaplan.common import UsageError
from numaplan.machine import Machine

from ..plan_file.plan import PLAN_LIMIT, Plan
from ..plan_file.ranks import ranks_elsewhere, ranks_of
from .folders import RefusedError
from .keys import ProgramKey, read_class
from .notes import Note, Use, add_use, drop_note, read_note
from .places import Place
from .program_files import build_id_behind

ENDING = ".json"
EXECUTABLE = "executable"  # of a plan's provenance: the file that its build id is of
_MOST_NAMES = 200  # of a build's plans for a machine that are looked at
_MOST_MACHINES = 16
_MOST_TRIED = 8

Parts = tuple[str, str, str]  # build, machine, class
Fits = Callable[[Plan, str], str]  # why a plan (where it is from) does not fit here; empty when it does


class StoredPlan(msgspec.Struct, frozen=True):
    """A plan that may be trusted. stored: when, in seconds since 1970; digest: of its text."""

    parts: Parts
    where: str
    plan: Plan
    digest: str
    stored: float
    note: Note


class Found(msgspec.Struct, frozen=True):
    """What a look-up brought. exact: it is of the run's own class; skipped: what was there and why it is not
    used."""

    stored: StoredPlan | None
    exact: bool = False
    skipped: tuple[str, ...] = ()


class PlanStore:
    """The plans of a place."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def find(self, key: ProgramKey, machine: Machine, fits: Fits) -> Found:
        """The plan for a run: of its class, else of its build. What is stored raises nothing; an address that
        cannot be reached raises MachineLacksError."""
        skipped: list[str] = []
        own = {self.parts(key, machine, name): None for name in _own_names(key)}
        for exact, found in ((True, iter(own)), (False, self._others(key, machine, own))):
            try:
                for parts in found:
                    stored = self._usable(parts, key, fits, skipped)
                    if stored:
                        return Found(stored, exact, tuple(skipped))
            except RefusedError as error:  # a folder
                skipped.append(error.what)
        return Found(None, skipped=tuple(dict.fromkeys(skipped)))

    @staticmethod
    def parts(key: ProgramKey, machine: Machine, name: str = "") -> Parts:
        """Where the plan for a run is; name: of its class."""
        return key.build, folder_of(machine.fingerprint), name or key.run.file

    def where(self, parts: Parts) -> str:
        """The same for people."""
        return "/".join((self.place.label, *parts)) + ENDING

    def read(self, parts: Parts) -> tuple[bytes, float]:
        """(text, when it was stored) of what may be trusted; raises FileNotFoundError, RefusedError."""
        return self.place.read(_file(parts), PLAN_LIMIT)

    def load(self, parts: Parts) -> StoredPlan:
        """A stored plan; raises FileNotFoundError, and UsageError for one that cannot be trusted or read."""
        data, stored = self.read(parts)
        where, digest = self.where(parts), hashlib.sha256(data).hexdigest()
        plan = Plan.from_json(data, where)
        return StoredPlan(parts, where, plan, digest, stored, read_note(self.place, parts, digest))

    def check_writable(self, parts: Parts) -> None:
        """Raise NumaplanError where a plan could not be stored, as far as can be known before it is made."""
        self.place.check_writable(_file(parts))

    def put(self, parts: Parts, plan: Plan) -> str:
        """Store a plan in place of what was there, and return where; raises NumaplanError."""
        self.place.write(_file(parts), plan.to_json())
        drop_note(self.place, parts)
        return self.where(parts)

    def drop(self, parts: Parts) -> None:
        """Take a plan away; raises NumaplanError."""
        drop_note(self.place, parts)
        self.place.remove(_file(parts))

    def note_use(self, stored: StoredPlan, use: Use) -> None:
        """Note that a plan was applied, where that can be written."""
        add_use(self.place, stored.parts, stored.digest, use)

    def classes(self, build: str, machine: str, most: int) -> Iterator[str]:
        """The classes that a build has plans of for a machine; raises RefusedError."""
        for name in self.place.names((build, machine), most):
            if name.endswith(ENDING):
                yield name.removesuffix(ENDING)

    def _usable(self, parts: Parts, key: ProgramKey, fits: Fits, skipped: list[str]) -> StoredPlan | None:
        """The plan if it is to be used for this run; else why it is not is added to `skipped`."""
        where = self.where(parts)
        try:
            stored = self.load(parts)
            if stored.note.stale:
                since = _day(stored.note.unfit_since)
                reason = f"most of what it names no longer appears, since {since}"
            else:
                reason = misfit(stored.plan, key, parts[2]) or fits(stored.plan, where)
        except FileNotFoundError:
            return None
        except UsageError as error:
            skipped.append(error.what)
            return None
        if reason:
            skipped.append(f"{where}: {reason}")
        return None if reason else stored

    def _others(self, key: ProgramKey, machine: Machine, own: dict[Parts, None]) -> Iterator[Parts]:
        """The build's other plans, those that are nearest first; not those of another number of ranks."""
        home, digest = folder_of(machine.fingerprint), key.run.digest
        machines = [name for name in self.place.names((key.build,), _MOST_MACHINES) if name != home]
        ranked: list[tuple[bool, bool, Parts]] = []
        for folder in (home, *sorted(machines)):
            for name in self.classes(key.build, folder, _MOST_NAMES):
                parts = key.build, folder, name
                ranks, threads, shape = read_class(name) or (key.run.ranks, 0, "")
                other_team = bool(threads and key.run.threads and threads != key.run.threads)
                if parts not in own and ranks == key.run.ranks and not other_team:
                    ranked.append((folder != home, shape != digest, parts))
        yield from (parts for _, _, parts in sorted(ranked)[:_MOST_TRIED])


def _own_names(key: ProgramKey) -> list[str]:
    """The class of a run; and, where the number of threads is known, the one that was stored without."""
    if key.run.name or not key.run.threads:
        return [key.run.file]
    return [key.run.file, msgspec.structs.replace(key.run, threads=0).file]


def misfit(plan: Plan, key: ProgramKey, name: str) -> str:
    """Why a plan is not for a run of this key, under whatever class it was stored; empty when it is."""
    known = plan.app.build_id
    if known and known not in key.build_ids and known != _build_id_now(plan, key):
        return "is for another build or another program"
    ranks = ranks_of(plan)
    # A job's launcher has no rank itself, and starts several.
    if plan.threads and key.run.ranks > 1 and len(ranks) != key.run.ranks:
        return f"is for {len(ranks)} ranks" if ranks else "is for one process"
    if elsewhere := ranks_elsewhere(plan, key.ranks_here):
        return elsewhere
    own, wanted = len(plan.threads), key.run.threads
    stored = read_class(name)
    # Helpers come on top of what the program was told.
    if wanted and own and stored and not stored[1] and not ranks and not wanted <= own < 2 * wanted:
        return f"is for {own} threads"
    return ""


def with_executable(plan: Plan, path: str) -> Plan:
    """The plan, which says where its program lies: a script that starts it does not tell."""
    return msgspec.structs.replace(plan, provenance={**plan.provenance, EXECUTABLE: path}) if path else plan


def _build_id_now(plan: Plan, key: ProgramKey) -> str:
    """The build id that the program of a plan has today, where scripts start it; empty when not known."""
    path = plan.provenance.get(EXECUTABLE)
    return build_id_behind(path) if isinstance(path, str) and "+" in key.build else ""


def folder_of(fingerprint: str) -> str:
    """The folder of a machine; raises UsageError for what is no fingerprint."""
    kind, _, text = fingerprint.partition(":")
    if kind != "sha256" or not re.fullmatch(r"[0-9a-f]{64}", text):
        raise UsageError("the plan's machine has no fingerprint", "make the plan again with 'nmap plan'")
    return text


def _file(parts: Parts) -> tuple[str, str, str]:
    return (*parts[:2], f"{parts[2]}{ENDING}")


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
