"""The accesses that the plugin recorded, as the samples of the threads that made them."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.machine import Machine
from numaplan.profiler import EVENT_CODE, EmulatedLevels, ProcessSpool, SampleBlock, SampleFilter

from ..guest.shape import node_order
from ..runs.tasks import Task
from .clocks import AccessLine, GuestClock, Times
from .stream import ACCESS, Accesses, Owners, read_accesses, recorded_bytes

_MOST_MOMENTS = 1 << 24  # of samples, to which times are joined


class Makers:
    """Who made an access: the tasks by number, and the image that each of the program's was at a time."""

    def __init__(
        self,
        tasks: Sequence[Task],
        family: Sequence[Task],
        images: Sequence[ProcessSpool],
        clock: GuestClock,
    ) -> None:
        self._clock, self.images = clock, images
        self._owners = Owners(tasks)
        members = {id(task) for task in family}
        mains = {task.process: task.tid for task in reversed(family)}
        self._member = np.array([id(task) in members for task in tasks] + [False])
        self.tid = np.array([task.tid for task in tasks] + [0], np.int32)
        self.pid = np.array([mains.get(task.process, 0) for task in tasks] + [0], np.int32)
        self._numbers: dict[int, list[int]] = {}
        for number, image in enumerate(images):
            self._numbers.setdefault(image.pid, []).append(number)

        first = images[0].pid if images else 0
        self.agents = 0 if len(self._numbers.get(first, ())) > 1 else -1  # image: before it was the program

    def find(self, accesses: Accesses) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of those that the program made, and of the task of each."""
        guest_ns = self._clock.guest(accesses["time_ns"].astype(np.int64))
        row = self._owners.find(accesses["task"], guest_ns)
        ours = np.flatnonzero(self._member[row])
        return ours, row[ours]

    def image(self, pid: int, host_ns: Times) -> NDArray[np.int64]:
        """(n,) the number of a process's image at each time."""
        numbers = self._numbers[pid]
        starts = np.array([self.images[number].start_ns for number in numbers])
        place = np.searchsorted(starts, self._clock.guest(host_ns), side="right") - 1
        answer: NDArray[np.int64] = np.array(numbers)[np.maximum(place, 0)]
        return answer

    def line(self, folder: Path, period: int, total: int) -> AccessLine:
        """The time of the recording, from the moments of its samples."""
        thin = 1 + recorded_bytes(folder) // ACCESS.itemsize // _MOST_MOMENTS
        moments = [np.empty(0, np.int64)]
        for accesses in read_accesses(folder):
            ours, _ = self.find(accesses)
            moments.append(accesses["time_ns"][ours[::thin]].astype(np.int64))
        return AccessLine(np.concatenate(moments), period * thin, total)


def guest_nodes(machine: Machine) -> NDArray[np.int32]:
    """(256,) the machine's nodes by the guest's numbers; of unknown ones -1."""
    node_ids = np.full(256, -1, np.int32)
    node_ids[: len(machine.nodes)] = [machine.nodes[row].id for row in node_order(machine)]
    return node_ids


def sample_blocks(
    folder: Path,
    machine: Machine,
    makers: Makers,
    line: AccessLine,
    progress: Callable[[float], None],
    keep: SampleFilter,
    levels: EmulatedLevels | None,
    sizes: int,
) -> Iterator[SampleBlock]:
    """Blocks of samples; see the profiler's blocks of an emulation."""
    done, whole = 0, recorded_bytes(folder) or 1
    cpus = np.array(machine.cpus, np.int32)
    nodes = np.array([machine.node_of_cpu[cpu] for cpu in machine.cpus], np.int32)
    node_ids = guest_nodes(machine)
    for piece in read_accesses(folder):
        ours, task = makers.find(piece)
        accesses = piece[ours]
        pid, host_ns = makers.pid[task], accesses["time_ns"].astype(np.int64)
        kept = _kept(makers, keep, pid, host_ns, accesses)
        accesses, task, pid, host_ns = accesses[kept], task[kept], pid[kept], host_ns[kept]
        done += piece.nbytes
        progress(done / whole)
        count, store = len(accesses), accesses["store"] > 0
        node = nodes[accesses["cpu"]]
        level, reach = accesses["level"], np.full(count, -1, np.int8)
        if levels is not None:
            reach = np.minimum(accesses["reach"], sizes).astype(np.int8)
            level = levels(level, reach, node_ids[accesses["node"]] != node)
        if count:
            yield SampleBlock(
                time_ns=line(host_ns),
                pid=pid,
                tid=makers.tid[task],
                cpu=cpus[accesses["cpu"]],
                node=node,
                addr=accesses["address"],
                phys_addr=accesses["physical"],
                ip=accesses["code"],
                event=np.where(store, EVENT_CODE["store"], EVENT_CODE["load"]).astype(np.uint8),
                is_write=store,
                level=level,
                latency=np.full(count, -1, np.int32),
                reach=reach,
                call=np.full(count, -1, np.int32),
            )


def _kept(
    makers: Makers, keep: SampleFilter, pid: NDArray[np.int32], host_ns: Times, accesses: Accesses
) -> NDArray[np.bool_]:
    """Which accesses the filter keeps, by the image that made them."""
    kept = np.ones(len(accesses), np.bool_)
    for one in np.unique(pid).tolist():
        own = np.flatnonzero(pid == one)
        image = makers.image(one, host_ns[own])
        for number in np.unique(image).tolist():
            rows = own[image == number]
            stays = keep(makers.images[number], accesses["code"][rows], accesses["address"][rows])
            if stays is not None:
                kept[rows] = stays
    return kept
