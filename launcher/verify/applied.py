"""applied.json: what was planned, what was applied, and why they differ; and the line that warns of it."""

from collections.abc import Sequence

import msgspec

from numaplan.common import reviewable_json
from numaplan.mapper import AppliedRank, Plan, RegionKey

SCHEMA = "numaplan/applied/1"
GOOD_SHARE = 0.99  # of a region's touched bytes on the planned node


class AppliedThread(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A thread of the plan; applied: the cpus it had when last looked at, empty if it never appeared.

    tid: its number in the system, 0 if it never appeared.
    """

    path: str
    planned: tuple[int, ...]
    applied: tuple[int, ...]
    process: str = "p0"
    tid: int = 0


class AppliedRegion(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes by node id; actual has touched pages only. misplaced: bytes on another node than planned.

    blocks: of a rule, how many it placed, planned bytes being those of all; actual: of the first of them and
    of ever fewer of the later ones. 0: one region.
    """

    region: RegionKey
    planned: dict[str, int]
    actual: dict[str, int]
    misplaced: int
    appeared: bool
    blocks: int = 0

    @property
    def well_placed(self) -> bool:
        """Whether nearly all that was touched is on the planned nodes."""
        return self.misplaced <= (1 - GOOD_SHARE) * max(sum(self.actual.values()), 1)


class Unplanned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A thread that lived and is not in the plan."""

    path: str
    applied: tuple[int, ...]
    process: str = "p0"


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of applied.json.

    unplanned: the first of the threads that the plan does not name, unplanned_count: how many there were;
    missing: planned threads that never appeared, as `process/path`; match: what --match did; memory_bytes:
    of the large blocks, mappings and static data that the program made, counted each time; memory_share: of
    these, what the plan has a place for; access_share: the share of the recorded accesses to regions of the
    plan that appeared; both -1 where not known; rank: with --job, which it is.
    """

    schema: str = SCHEMA
    ok: bool
    summary: str
    exit_code: int
    threads: tuple[AppliedThread, ...]
    memory: tuple[AppliedRegion, ...]
    unplanned: tuple[Unplanned, ...]
    unplanned_count: int
    missing: tuple[str, ...]
    reasons: tuple[str, ...]
    match: str = ""
    memory_bytes: int = 0
    memory_share: float = -1.0
    access_share: float = -1.0
    rank: AppliedRank | msgspec.UnsetType = msgspec.UNSET

    def to_json(self) -> bytes:
        """The file's text."""
        return reviewable_json(msgspec.to_builtins(self))


def warning_of(applied: Applied, plan: Plan) -> str:
    """One line on what the plan and the run do not have in common; empty when there is nothing to say."""
    parts = [
        *unplanned_threads(applied.unplanned, applied.unplanned_count),
        *missing_threads(applied.missing, plan),
    ]
    others = [reason for reason in applied.reasons if not any(reason.startswith(part) for part in parts)]
    return "; ".join([*parts, *others[:3]])


def unplanned_threads(unplanned: Sequence[Unplanned], count: int) -> list[str]:
    """What to say of threads that the plan does not name, if there are any; count: of all."""
    if not unplanned:
        return []
    return [f"{count} {'thread is' if count == 1 else 'threads are'} not in the plan ({_some(unplanned)})"]


def missing_threads(missing: Sequence[str], plan: Plan) -> list[str]:
    """The same of planned threads that never appeared."""
    if not missing:
        return []
    names = ", ".join(name.removeprefix("p0/") for name in missing[:3])
    more = ", …" if len(missing) > 3 else ""
    return [f"{len(missing)} of {len(plan.threads)} planned threads never appeared ({names}{more})"]


def _some(unplanned: Sequence[Unplanned]) -> str:
    names = [thread_name(item.process, item.path) for item in unplanned[:3]]
    return ", ".join(names) + (", …" if len(unplanned) > 3 else "")


def thread_name(process: str, path: str) -> str:
    """A thread as people are told of it: threads of the first process by their creation path alone."""
    return path if process == "p0" else f"{process}/{path}"


def human_bytes(count: int) -> str:
    """`4.2 MB`: in powers of 1000."""
    value, unit = float(count), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
