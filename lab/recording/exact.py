"""What the plugin counted of all accesses (lab/native/plugin/exact.h), as done by the program's threads."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import (
    PageUseBlock,
    ProcessSpool,
    RunningBlock,
    SampleFilter,
    TransferBlock,
    read_looks,
    read_page_uses,
    read_transfers,
)

from .blocks import Makers
from .clocks import AccessLine

WHO = np.dtype([("task", "<u8"), ("time_ns", "<u8")])
WHO_FILE, USES_FILE, TRANSFERS_FILE = "exact-who", "exact-uses", "exact-transfers"
RUNNING_FILE = "exact-running"
PAGE_SHIFT, REMOTE_SHIFT, NODE_SHIFT = 12, 37, 38  # of an address; in the number of a page the rest
_PAGE = np.uint64((1 << REMOTE_SHIFT) - 1)
# Of the host's, by which the guest's clock may be wrong.
LATE_NS = tuple(4_000_000 << 2 * n for n in range(4))
_NOBODY = -1

Ints = NDArray[np.int64]


class ExactCounts:
    """Of a run. line: the recording's time; last_ns: its end by the host's clock; keep: which memory stays;
    node_ids: the machine's nodes by the guest's numbers; sided: whether the plugin knew each cpu's node.

    Who is a task as long as it runs one program; those that are none of the program's are left out, and so
    is what the agent's child did before it became the program.
    """

    def __init__(
        self,
        folder: Path,
        makers: Makers,
        line: AccessLine,
        last_ns: int,
        keep: SampleFilter,
        node_ids: NDArray[np.int32],
        sided: bool = True,
    ) -> None:
        self._folder, self._line, self._last_ns, self._keep = folder, line, last_ns, keep
        self._node_ids, self._sided = node_ids, sided
        path = folder / WHO_FILE
        people = np.fromfile(path, WHO) if path.exists() else np.zeros(0, WHO)
        ours, row = makers.find(people)
        self._row = np.full(len(people) + 1, _NOBODY, np.int64)
        self._row[ours] = row
        self._tid = makers.tid[self._row]
        self._alive_ns = np.append(line(people["time_ns"].astype(np.int64)), 0)
        self._image = np.full(len(people) + 1, _NOBODY, np.int64)  # the last entry is anybody else
        for who, pid in zip(ours.tolist(), makers.pid[row].tolist(), strict=True):
            image = int(makers.image(pid, people["time_ns"][[who]].astype(np.int64))[0])
            self._image[who] = _NOBODY if image == makers.agents else image
        self._images = makers.images

    def page_use(self, missed: bool) -> Iterator[PageUseBlock]:
        """Who used which page, by image; missed: whether the plugin's misses are those of the recording."""
        for uses in read_page_uses(self._folder / USES_FILE, self._last_ns):
            addr = (uses.number & _PAGE) << np.uint64(PAGE_SHIFT)
            node = self._node_ids[(uses.number >> np.uint64(NODE_SHIFT)).astype(np.int64)]
            local = (uses.number >> np.uint64(REMOTE_SHIFT) & np.uint64(1) ^ np.uint64(1)).astype(np.int8)
            if not self._sided:
                local[:] = -1
            who = self._known(uses.who)
            for image, kept in self._by_image(who, addr):
                found = uses.chosen(kept)
                start = self._line(found.start_ns)
                yield PageUseBlock(
                    image.pid,
                    start,
                    np.maximum(self._line(found.end_ns), start + 1),
                    self._line(found.first_ns),
                    addr[kept],
                    self._tid[who[kept]],
                    self._alive_ns[who[kept]],
                    found.loads,
                    found.stores,
                    found.missed if missed else np.full(len(found), -1, np.int64),
                    tuple(self._line(found.end_ns + late) for late in LATE_NS),
                    node[kept],
                    local[kept],
                )

    def transfers(self) -> Iterator[TransferBlock]:
        """Who took lines from whom, in the same process or another, by stretch of time and image."""
        path = self._folder / TRANSFERS_FILE
        pairs = path.stat().st_size // 16 if path.exists() else 0
        pieces = [np.memmap(path, np.uint64, "r", 0, (pairs, 2))] if pairs else []
        for stretch in read_transfers(pieces, self._last_ns):
            writer, reader = self._known(stretch.writer), self._known(stretch.reader)
            late = (stretch.end_ns + late for late in LATE_NS)
            start, end, *told = self._line(
                np.array([stretch.start_ns, stretch.end_ns, *late], np.int64)
            ).tolist()
            good = (self._image[writer] >= 0) & (self._row[writer] != self._row[reader])
            for image, kept in self._by_image(reader, stretch.addr):
                kept &= good
                if kept.any():
                    yield TransferBlock(
                        image.pid,
                        start,
                        max(end, start + 1),
                        stretch.addr[kept],
                        self._tid[writer[kept]],
                        self._alive_ns[writer[kept]],
                        self._tid[reader[kept]],
                        self._alive_ns[reader[kept]],
                        stretch.events[kept],
                        tuple(told),
                    )

    def running(self) -> Iterator[RunningBlock]:
        """Who had a cpu or waited for one, now and then; of looks at one time of the recording the first."""
        path = self._folder / RUNNING_FILE
        words = np.fromfile(path, np.uint64) if path.exists() else np.zeros(0, np.uint64)
        time, who = read_looks(words[: len(words) // 2 * 2].reshape(-1, 2), len(self._image) - 1)
        ours = self._image[who] >= 0
        time, who = time[ours], who[ours]
        at = self._line(time)
        _, first, number = np.unique(at, return_index=True, return_inverse=True)
        kept = time == time[first][number]
        yield RunningBlock(at[kept], self._tid[who[kept]], self._alive_ns[who[kept]])

    def _known(self, who: Ints) -> Ints:
        return np.where(who < len(self._row) - 1, who, len(self._row) - 1)

    def _by_image(
        self, who: Ints, addr: NDArray[np.uint64]
    ) -> Iterator[tuple[ProcessSpool, NDArray[np.bool_]]]:
        """Each image that some are of, and which of them stay."""
        image = self._image[who]
        for number in np.unique(image[image >= 0]).tolist():
            own = image == number
            kept = self._keep(self._images[number], np.zeros(len(addr), np.uint64), addr)
            if kept is not None:
                own &= kept
            if own.any():
                yield self._images[number], own
