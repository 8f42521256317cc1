"""The policy's actuator in the simulator: binding threads, moving pages at the rate the kernel can."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulator.calibration import PHYSICS
from benchmarks.simulator.system import cpu_load, idlest_cpu, move_thread
from benchmarks.simulator.world import BLOCK, FREE, World
from numaplan.mapper.online.actions import Action, MovePages


@dataclass
class Actuator:
    """Applies actions; counts what it did. thread_moves: to another node; by_job: job number -> page
    migrations (decisions that moved any of its memory), thread moves to another node."""

    grain: float = 1.0
    thread_moves: int = 0
    moved_bytes: float = 0.0
    by_job: dict[int, list[int]] = field(default_factory=dict)
    _pending: deque[tuple[NDArray[np.int64], int]] = field(default_factory=deque)
    _allowance: float = 0.0
    _confined: set[int] = field(default_factory=set)  # tids
    _known: frozenset[int] = frozenset()  # tids of the decision before

    def take(self, world: World, actions: tuple[Action, ...]) -> None:
        """New actions; pages of earlier ones that were not moved in time are given up."""
        self._pending.clear()
        self._allowance = 0.0
        rows = {tid: row for row, tid in enumerate(world.tid.tolist())}
        memory_of: set[int] = set()
        node_row = {node: row for row, node in enumerate(world.calibration.machine.node_ids)}
        cpu_row = {cpu: row for row, cpu in enumerate(world.calibration.machine.cpus)}
        by_pid: dict[int, list[MovePages]] = {}
        for action in actions:
            if isinstance(action, MovePages):
                by_pid.setdefault(action.pid, []).append(action)
            elif action.tid in rows:
                cpu = None if action.cpu is None else cpu_row[action.cpu]
                self._bind(world, rows[action.tid], node_row[action.node], cpu)
        for pid, moves in by_pid.items():
            memory_of |= self._queue(world, pid, moves, node_row)
        for job in memory_of:
            self.by_job.setdefault(job, [0, 0])[0] += 1

    def _bind(self, world: World, thread: int, node: int, cpu: int | None) -> None:
        before = int(world.node[thread])
        world.bound_node[thread] = node
        world.bound_cpu[thread] = FREE if cpu is None else cpu
        if cpu is None and before == node:
            return
        load = cpu_load(world)
        load[world.cpu[thread]] -= 1
        move_thread(world, thread, idlest_cpu(world, load, node) if cpu is None else cpu, PHYSICS.warm_up_s)
        if before != node:
            self.thread_moves += 1
            self.by_job.setdefault(int(world.job[thread]), [0, 0])[1] += 1

    def confine(self, world: World) -> None:
        """Bind free threads to the node they are on, where that has a cpu for each, once anything moved.

        When threads ended, those bound so on nodes that the system would balance are let go instead, but for
        jobs whose threads the policy placed.
        """
        if not self.by_job:
            return
        gone, self._known = self._known - frozenset(world.tid.tolist()), frozenset(world.tid.tolist())
        if gone and self._let_go(world):
            return
        crowded = np.bincount(world.node[world.active], minlength=world.nodes) > world.seats
        free = (world.bound_node == FREE) & (world.bound_cpu == FREE) & ~crowded[world.node]
        world.bound_node = np.where(free, world.node, world.bound_node)
        self._confined |= set(world.tid[free].tolist())

    def _let_go(self, world: World) -> bool:
        """Whether any thread was let go."""
        count = np.bincount(world.node[world.active], minlength=world.nodes)
        fuller = count / world.seats > ((count + 1) / world.seats).min() + 1e-9
        placed = [job for job, (_, threads) in self.by_job.items() if threads]
        rows = np.isin(world.tid, list(self._confined)) & ~np.isin(world.job, placed) & fuller[world.node]
        world.bound_node[rows] = FREE
        self._confined -= set(world.tid[rows].tolist())
        return bool(rows.any())

    def _queue(self, world: World, pid: int, moves: list[MovePages], node_row: dict[int, int]) -> set[int]:
        """Wait for the kernel; returns the jobs whose memory will move."""
        blocks = np.flatnonzero(world.block_pid == pid)
        order = np.argsort(world.block_number[blocks])
        numbers = world.block_number[blocks][order]
        jobs: set[int] = set()
        for move in moves:
            places = np.minimum(np.searchsorted(numbers, move.pages), max(len(numbers) - 1, 0))
            found = blocks[order[places[numbers[places] == move.pages]]] if len(numbers) else blocks
            goal = node_row[move.node]
            found = found[world.block_node[found] != goal]
            if self.grain < 1.0:  # so much of each block moves; which, over many, comes to the same
                found = found[world.rng.random(len(found)) < self.grain]
            self._pending.append((found, goal))
            jobs |= set(world.block_job[found].tolist())
        return jobs

    def move_pages(self, world: World, seconds: float) -> NDArray[np.int64]:
        """Move what can be moved in this time; returns the rows of the moved blocks."""
        self._allowance += PHYSICS.move_rate * seconds
        moved = []
        while self._pending and self._allowance >= BLOCK:
            rows, node = self._pending.popleft()
            fit = int(self._allowance // BLOCK)
            world.block_node[rows[:fit]] = node
            moved.append(rows[:fit])
            self._allowance -= len(rows[:fit]) * BLOCK
            if len(rows) > fit:
                self._pending.appendleft((rows[fit:], node))
        done = np.concatenate(moved) if moved else np.empty(0, dtype=np.int64)
        self.moved_bytes += float(len(done) * BLOCK)
        return done

    def forget_rows(self) -> None:
        """Rows of blocks have changed: what waits is given up."""
        self._pending.clear()
