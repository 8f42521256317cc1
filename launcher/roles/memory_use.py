"""What roles use of the planned memory, by the plan or its trace, and what running threads use of it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from numaplan.common import UsageError
from numaplan.mapper import Floats, Ints, Plan, RegionKey
from numaplan.profiler import LiveSamples

from ..enforce.plan_table import PlanTable
from ..verify.logged_run import LoggedRun

BLOCKS = 64  # of a region that are told apart where a trace says who uses them


@dataclass(frozen=True)
class RoleUse:
    """use: (T, F) by rows of the plan's threads; comm: (T, T), None where it is not known.

    The pieces of memory F are the nodes that the plan puts memory on, or with a trace, blocks of the planned
    regions.
    """

    plan: Plan
    table: PlanTable
    use: Floats
    comm: Floats | None
    by_blocks: bool

    @staticmethod
    def of_plan(plan: Plan, table: PlanTable) -> "RoleUse":
        """A role uses what the plan puts on its node."""
        nodes = _nodes(plan)
        use = np.zeros((len(plan.threads), len(nodes)))
        for row, thread in enumerate(plan.threads):
            if thread.node in nodes:
                use[row, nodes.index(thread.node)] = 1.0
        return RoleUse(plan, table, use, None, by_blocks=False)

    @staticmethod
    def of_trace(path: str, plan: Plan, table: PlanTable) -> "RoleUse":
        """What each role used in the recording that the plan was made from."""
        from numaplan.analyzer import analyze_trace, page_accesses
        from numaplan.profiler import Trace

        rows = {(thread.process, thread.path): row for row, thread in enumerate(plan.threads)}
        with Trace.open(path) as trace:
            pages, comm = page_accesses(trace), analyze_trace(trace).comm
            named = trace.rows("SELECT process, path FROM threads ORDER BY thread")
            regions = trace.rows(
                "SELECT region, r.process, kind, r.name, bytes, coalesce(t.path, ''), sequence"
                " FROM regions r LEFT JOIN threads t ON r.thread = t.thread"
            )
        row_of = np.array([rows.get((str(process), str(where)), -1) for process, where in named], np.int64)
        if not (row_of >= 0).any():
            raise UsageError(f"{path}: no thread of the plan is in it", "give the trace of the plan")
        use = np.zeros((len(plan.threads), len(table.regions) * BLOCKS))
        keys = {_key(region.region): row for row, region in enumerate(table.regions)}
        for number, process, kind, name, size, thread, sequence in regions:
            at = keys.get((process, kind, name, thread if kind != "static" else "", sequence))
            if at is None:
                continue
            part = pages.region == number
            block = np.minimum(pages.page[part] * 4096 * BLOCKS // max(size, 1), BLOCKS - 1)
            row_of_sample = row_of[pages.thread[part]]
            kept = row_of_sample >= 0
            np.add.at(use, (row_of_sample[kept], at * BLOCKS + block[kept]), pages.accesses[part][kept])
        return RoleUse(plan, table, use, _reordered(comm, row_of, len(plan.threads)), by_blocks=True)

    def piece(self, row: int, offset: Ints, today: int = 0) -> Ints:
        """Which piece of memory these offsets in the region of a row of the table are in; -1 none.

        today: how large the region is now, 0: as in the plan.
        """
        region = self.table.regions[row]
        size = max((region.scales and today) or region.region.bytes, 1)
        if self.by_blocks:
            return np.where(offset < size, row * BLOCKS + offset * BLOCKS // size, -1)
        nodes = _nodes(self.plan)
        found = np.full(len(offset), -1, dtype=np.int64)
        for run in region.runs_of(size) if region.policy in ("bind", "preferred") else ():
            found[(offset >= run.offset) & (offset < run.offset + run.bytes)] = nodes.index(run.node)
        return found


class LiveUse:
    """What the running threads used since their start; rows as the plan's threads.

    samples: how many were of planned memory; tids: of the planned threads that live.
    """

    def __init__(self, live: LiveSamples, logged: LoggedRun, table: PlanTable, roles: RoleUse) -> None:
        plan = roles.plan
        self.tids = {
            key: thread.tid
            for key, thread in logged.threads.items()
            if thread.planned and not thread.ended and thread.tid
        }
        row_of = {
            self.tids[thread.process, thread.path]: row
            for row, thread in enumerate(plan.threads)
            if (thread.process, thread.path) in self.tids
        }
        self._row = np.array([row_of.get(int(tid), -1) for tid in live.tid], dtype=np.int64)
        self._live, self._count = live, len(plan.threads)
        self.use: Floats = np.zeros_like(roles.use)
        self.samples = 0
        address = live.addr.astype(np.int64)
        for row in range(len(table.regions)):
            region = logged.regions.get(row)
            if region is None or not region.address:
                continue
            hits = (self._row >= 0) & (live.pid == region.pid)
            hits &= (address >= region.address) & (address < region.address + region.bytes)
            piece = roles.piece(row, address[hits] - region.address, region.bytes)
            known = piece >= 0
            np.add.at(self.use, (self._row[hits][known], piece[known]), live.count[hits][known])
            self.samples += int(known.sum())

    def communication(self) -> Floats:
        """(T, T) who shares memory with whom by these samples."""
        from numaplan.analyzer import communication_matrix

        ours = self._row >= 0
        live = self._live
        found = communication_matrix(
            self._row[ours], live.addr[ours], live.is_write[ours], live.time_ns[ours], threads=self._count
        )
        return np.asarray(found, dtype=np.float64)


def joined(pieces: Sequence[LiveSamples]) -> LiveSamples:
    """Samples taken one after another, as if they had been taken at once."""
    arrays = {
        field.name: np.concatenate([getattr(piece, field.name) for piece in pieces])
        for field in fields(LiveSamples)
        if field.name not in ("instructions", "lost")
    }
    instructions = tuple(pair for piece in pieces for pair in piece.instructions)
    return LiveSamples(**arrays, instructions=instructions, lost=sum(piece.lost for piece in pieces))


def _nodes(plan: Plan) -> list[int]:
    return sorted({run.node for region in plan.memory for run in region.runs})


def _key(region: RegionKey) -> tuple[str, str, str, str, int | None]:
    thread = region.thread if region.kind != "static" else ""
    return region.process, region.kind, region.name, thread, region.sequence


def _reordered(comm: Floats, row_of: Ints, count: int) -> Floats:
    found = np.zeros((count, count))
    known = np.flatnonzero(row_of >= 0)
    found[np.ix_(row_of[known], row_of[known])] = comm[np.ix_(known, known)]
    return found
