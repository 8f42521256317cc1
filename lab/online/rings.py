"""The virtual machine's memory sampler as the host reads it: lab/native/plugin/samples.h in shared memory."""

import mmap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..guest.health import HEAD_BYTES, RING_BYTES

_WORDS = [(name, "<u8") for name in ("time_ns", "task", "address", "code")]
SAMPLE = np.dtype([*_WORDS, ("period", "<u4"), ("cpu", "<u2"), ("node", "u1"), ("flags", "u1")])
STORE, CACHED = 1, 2  # of `flags`
_PAGE = 4096
_VCPUS, _RECORDS, _PERIOD = 2, 3, 2  # places in the head, of 4, 4 and 8 bytes
_HEAD, _LOST, _TAIL = 0, 1, 8  # in a ring, of 8 bytes
_NOTHING = np.empty(0, dtype=SAMPLE)


class Rings:
    """One ring for each of the guest's cpus, which the plugin fills and we empty.

    folder: the guest's. To be used while no program in the guest takes samples.
    """

    def __init__(self, folder: Path) -> None:
        with (folder / "samples").open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        words = np.frombuffer(self._memory, dtype="<u4", count=HEAD_BYTES // 4)
        vcpus, records = int(words[_VCPUS]), int(words[_RECORDS])
        first = (HEAD_BYTES + vcpus * RING_BYTES + _PAGE - 1) // _PAGE * _PAGE
        self._head = np.frombuffer(self._memory, dtype="<u8", count=HEAD_BYTES // 8)
        counts = vcpus * RING_BYTES // 8
        self._rings = np.frombuffer(self._memory, "<u8", counts, HEAD_BYTES).reshape(vcpus, -1)
        self._records = np.frombuffer(self._memory, SAMPLE, vcpus * records, first).reshape(vcpus, records)
        self._before = self.made
        self._lost = self._lost_now()

    def start(self, period: int) -> None:
        """Sample one in so many accesses."""
        self.take()
        self._head[_PERIOD] = period
        self._before, self._lost = self.made, self._lost_now()

    def stop(self) -> None:
        """No more samples."""
        self._head[_PERIOD] = 0

    @property
    def made(self) -> int:
        """Samples that were ever made, those lost too."""
        return int(self._rings[:, _HEAD].sum() + self._rings[:, _LOST].sum())

    def since_start(self) -> int:
        """Samples made since the start."""
        return self.made - self._before

    def take(self) -> tuple[NDArray[np.void], int]:
        """Samples since the last call, and how many found no room."""
        found = []
        for ring, records in zip(self._rings, self._records, strict=True):
            end, at = int(ring[_HEAD]), int(ring[_TAIL])
            found.append(records[np.arange(at, end) % len(records)])
            ring[_TAIL] = end
        before, self._lost = self._lost, self._lost_now()
        return np.concatenate(found) if found else _NOTHING, self._lost - before

    def _lost_now(self) -> int:
        return int(self._rings[:, _LOST].sum())
