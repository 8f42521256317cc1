"""The state of a simulated machine: threads, memory in blocks, and who uses what share of which block.

Rows of threads and blocks change when tasks come and go (`add_threads`, `drop_jobs`); everything that follows
from the rows alone is rebuilt then. A *segment* is a thread's own memory or what all threads of a task
share: rows 0..T-1 belong to the threads, row T + j to the task in row j.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulator.calibration import Calibration
from benchmarks.simulator.programs import Task

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

BLOCK = 4 << 20  # bytes of memory that live and move together
SHARED = -1  # lane of blocks that all threads of a task use
FREE = -1  # not bound
_THREAD_COLUMNS = ("tid", "job", "lane", "pid", "cpu", "bound_node", "bound_cpu", "done", "lost_s", "asleep")
_BLOCK_COLUMNS = ("block_job", "block_lane", "block_pid", "block_number", "block_node")


@dataclass
class Job:
    """A task that is running. mpki: (phases, threads); ends: (phases,) cumulative shares of the work;
    scan_period: seconds between AutoNUMA's scans.
    """

    number: int
    task: Task
    mpki: Floats
    ends: Floats
    started_s: float
    interleaved: bool = False
    bound_node: int = FREE
    scan_period: float = 1.0

    @property
    def quota(self) -> float:
        """Instructions of each thread."""
        return self.task.program.giga_instructions * 1e9 / self.task.threads


@dataclass
class World:
    """All arrays. Threads: (T,) tid, job number, lane in the job, pid, cpu row, bound node and cpu,
    instructions done, seconds it still has to lose, whether it sleeps; blocks: (B,) job, lane, pid, page
    number, node row.
    """

    calibration: Calibration
    seed: int
    jobs: list[Job] = field(default_factory=list)
    next_id: int = 1000

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        machine = self.calibration.machine
        self.cpu_node: Ints = np.array(
            [machine.node_ids.index(machine.node_of_cpu[cpu]) for cpu in machine.cpus], dtype=np.int64
        )
        self.nodes = len(machine.nodes)
        self.cpus_of = [np.flatnonzero(self.cpu_node == node) for node in range(self.nodes)]
        self.seats: Ints = np.bincount(self.cpu_node, minlength=self.nodes)
        for column in (*_THREAD_COLUMNS, *_BLOCK_COLUMNS):
            kind = np.float64 if column in ("done", "lost_s", "asleep") else np.int64
            setattr(self, column, np.empty(0, dtype=kind))
        self._rebuild()

    tid: Ints = field(init=False)
    job: Ints = field(init=False)
    lane: Ints = field(init=False)
    pid: Ints = field(init=False)
    cpu: Ints = field(init=False)
    bound_node: Ints = field(init=False)
    bound_cpu: Ints = field(init=False)
    done: Floats = field(init=False)
    lost_s: Floats = field(init=False)
    asleep: Ints = field(init=False)
    block_job: Ints = field(init=False)
    block_lane: Ints = field(init=False)
    block_pid: Ints = field(init=False)
    block_number: Ints = field(init=False)
    block_node: Ints = field(init=False)

    @property
    def node(self) -> Ints:
        """(T,) node row each thread is on."""
        return self.cpu_node[self.cpu]

    @property
    def active(self) -> Flags:
        """(T,) threads that have work left and are awake."""
        return self.unfinished & (self.asleep == 0)

    @property
    def unfinished(self) -> Flags:
        """(T,) threads with work left."""
        return self.done < self.quota

    def add_threads(self, job: Job, cpus: Ints) -> None:
        """Enter a job's threads on these cpus, and its memory, as first touched from there."""
        task, count = job.task, job.task.threads
        tids = np.arange(self.next_id, self.next_id + count)
        self.next_id += count
        pids = tids[np.arange(count) // (count // task.processes) * (count // task.processes)]
        none = np.full(count, FREE)
        bound = np.full(count, job.bound_node)
        zeros = np.zeros(count)
        fresh = (
            tids, np.full(count, job.number), np.arange(count), pids, cpus, bound, none, zeros, zeros,
            np.zeros(count, dtype=np.int64),
        )  # fmt: skip
        self._append(_THREAD_COLUMNS, fresh)
        self._append(_BLOCK_COLUMNS, self._first_touch(job, pids, self.cpu_node[cpus]))
        self.jobs.append(job)
        self._rebuild()

    def _first_touch(self, job: Job, pids: Ints, nodes: Ints) -> tuple[Ints, ...]:
        program, count = job.task.program, job.task.threads
        own = max(1, round(program.memory_mb * 2**20 * (1 - program.shared) / BLOCK / count))
        common = round(program.memory_mb * 2**20 * program.shared / BLOCK)
        lanes = np.concatenate([np.repeat(np.arange(count), own), np.full(common, SHARED)])
        owners = np.where(lanes == SHARED, 0, lanes)
        # What all use is filled by whoever comes; what one uses by itself, but for the serial part.
        toucher = np.where(lanes == SHARED, self.rng.integers(0, count, len(lanes)), lanes)
        toucher = np.where(self.rng.random(len(lanes)) < program.serial, 0, toucher)
        where = nodes[toucher]
        if job.interleaved:
            where = np.arange(len(lanes)) % self.nodes
        elif job.bound_node != FREE:
            where = np.full(len(lanes), job.bound_node)
        # Segments lie apart, as heap blocks do, so that neighbours in number belong to one lane.
        number = np.arange(len(lanes)) + 64 * (1 + np.where(lanes == SHARED, count, lanes))
        return np.full(len(lanes), job.number), lanes, pids[owners], number, where

    def drop_jobs(self, numbers: list[int]) -> None:
        """Forget ended jobs with their threads and memory."""
        stays, blocks = ~np.isin(self.job, numbers), ~np.isin(self.block_job, numbers)
        for column in _THREAD_COLUMNS:
            setattr(self, column, getattr(self, column)[stays])
        for column in _BLOCK_COLUMNS:
            setattr(self, column, getattr(self, column)[blocks])
        self.jobs = [job for job in self.jobs if job.number not in numbers]
        self._rebuild()

    def _append(self, columns: tuple[str, ...], values: tuple[NDArray[np.float64 | np.int64], ...]) -> None:
        for column, value in zip(columns, values, strict=True):
            setattr(self, column, np.concatenate([getattr(self, column), value]))

    def _rebuild(self) -> None:
        """What follows from the rows: job rows, quotas, programs' constants by thread, sharing, block
        segments; blocks_of: (S + 1,) where each segment's blocks start in (B,) all; by_address: (B,) blocks
        by pid and number, and the place of each; used: thread, segment and share, where that is not 0.
        """
        row_of = {job.number: row for row, job in enumerate(self.jobs)}
        self.job_row: Ints = np.array([row_of[number] for number in self.job.tolist()], dtype=np.int64)
        programs = [job.task.program for job in self.jobs]
        self.barrier = np.array([program.barrier for program in programs])
        self.quota = np.array([job.quota for job in self.jobs])[self.job_row] if self.jobs else np.empty(0)
        self.cpi = np.array([programs[row].cpi for row in self.job_row.tolist()])
        self.mlp = np.array([programs[row].mlp for row in self.job_row.tolist()])
        self.threads_of = np.array([job.task.threads for job in self.jobs], dtype=np.float64)
        self.work = np.array([job.quota for job in self.jobs]) * self.threads_of
        self.fixed = np.array([job.interleaved or job.bound_node != FREE for job in self.jobs], dtype=bool)
        self.phases: list[int] = []
        self.sharing = self._sharing(row_of)
        self.common: Floats = self.sharing[:, len(self.tid) :].sum(axis=1)
        threads = {
            key: row for row, key in enumerate(zip(self.job.tolist(), self.lane.tolist(), strict=True))
        }
        count = len(self.tid)
        self.block_segment: Ints = np.array(
            [
                count + row_of[job] if lane == SHARED else threads[job, lane]
                for job, lane in zip(self.block_job.tolist(), self.block_lane.tolist(), strict=True)
            ],
            dtype=np.int64,
        )
        self.block_job_row: Ints = np.array([row_of[job] for job in self.block_job.tolist()], dtype=np.int64)
        sizes = np.bincount(self.block_segment, minlength=count + len(self.jobs))
        self.segment_blocks = np.maximum(sizes, 1)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self.blocks_of = starts, np.argsort(self.block_segment, kind="stable")
        order = np.lexsort((self.block_number, self.block_pid))
        self.by_address = order, np.argsort(order)
        thread, segment = np.nonzero(self.sharing)
        self.used = thread, segment, self.sharing[thread, segment]
        self.memory_changed()

    def _sharing(self, row_of: dict[int, int]) -> Floats:
        """(T, S) share of each thread's accesses that goes to each segment."""
        count = len(self.tid)
        matrix = np.zeros((count, count + len(self.jobs)))
        for job in self.jobs:
            rows, program = np.flatnonzero(self.job == job.number), job.task.program
            halo = program.halo if len(rows) > 1 else 0.0
            shared = (
                program.shared if (self.block_lane[self.block_job == job.number] == SHARED).any() else 0.0
            )
            matrix[rows, rows] += 1.0 - halo - shared
            matrix[rows, np.roll(rows, 1)] += halo / 2
            matrix[rows, np.roll(rows, -1)] += halo / 2
            matrix[rows, count + row_of[job.number]] += shared
        return matrix

    def memory_changed(self) -> None:
        """Blocks moved: (T, K) `places`, the share of each thread's accesses by node, follows."""
        count = self.sharing.shape[1]
        cells = self.block_segment * self.nodes + self.block_node
        spread = np.bincount(cells, minlength=count * self.nodes).reshape(count, self.nodes)
        self.segment_places = spread / self.segment_blocks[:, None]
        self.places: Floats = self.sharing @ self.segment_places

    def miss_rates(self) -> Floats:
        """(T,) misses a thousand instructions in the phase that each job is in."""
        progress = np.bincount(self.job_row, self.done, minlength=len(self.jobs)) / self.work
        phases = [
            min(int(np.searchsorted(job.ends, done, side="right")), len(job.ends) - 1)
            for job, done in zip(self.jobs, progress.tolist(), strict=True)
        ]
        if phases != self.phases:
            self.phases, self.rates = phases, np.zeros(len(self.tid))
            for row, (job, phase) in enumerate(zip(self.jobs, phases, strict=True)):
                mine = self.job_row == row
                self.rates[mine] = job.mpki[phase][self.lane[mine]]
        return self.rates


def new_job(number: int, task: Task, now: float, rng: np.random.Generator) -> Job:
    """A job with its threads' miss rates drawn around the phases'."""
    phases = task.program.phases
    noise = rng.standard_normal((len(phases), task.threads))
    base = np.array([phase.mpki for phase in phases])[:, None]
    spread = np.array([phase.spread for phase in phases])[:, None]
    shares = np.cumsum([phase.share for phase in phases])
    return Job(number, task, base * np.maximum(1.0 + spread * noise, 0.05), shares / shares[-1], now)
