"""What the plugin recorded (lab/native/plugin/recording.h): accesses by vcpu, and facts beside them."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError

from ..runs.tasks import Task

_WORDS = [(name, "<u8") for name in ("time_ns", "task", "address", "physical", "code")]
_BYTES = [(name, "u1") for name in ("node", "level", "reach", "store")]
ACCESS = np.dtype([*_WORDS, ("cpu", "<u2"), *_BYTES, ("unused", "<u2")])
_AT_ONCE = 1 << 20
_THINLY = 1 << 8
_HINT = "free some space, or set TMPDIR to a larger disk, or record with a larger --period"

Accesses = NDArray[np.void]


@dataclass(frozen=True)
class Facts:
    """footprint: bytes of touched pages; lost: samples; memory: (node, first, bytes) of each piece."""

    footprint: int
    lost: int
    memory: Sequence[tuple[int, int, int]]


def read_facts(folder: Path) -> Facts:
    """From the guest's folder; raises UsageError where recording stopped (a full disk) or never began."""
    try:
        lines = [line.split() for line in (folder / "recorded").read_text().splitlines()]
        found = {words[0]: words[1:] for words in lines if words[0] != "node"}
        memory = [(int(words[1]), int(words[2]), int(words[3])) for words in lines if words[0] == "node"]
        error, lost = int(found["error"][0]), int(found["error"][2])
        footprint = int(found.get("footprint", ["0"])[0])
    except (OSError, ValueError, IndexError, KeyError):
        raise UsageError(
            f"{folder}: the guest left no recording", "record again, with --set memory=4G"
        ) from None
    if error:
        raise UsageError(f"{folder}: recording stopped: {os.strerror(error)}", _HINT)
    return Facts(footprint, lost, memory)


def recorded_bytes(folder: Path) -> int:
    """Size of what is recorded by now."""
    return sum(path.stat().st_size for path in folder.glob("recorded-*"))


def read_accesses(folder: Path) -> Iterator[Accesses]:
    """Pieces of all vcpus' accesses, in order of time, about _AT_ONCE at a time."""
    sizes = {path: path.stat().st_size // ACCESS.itemsize for path in sorted(folder.glob("recorded-*"))}
    files = [np.memmap(path, ACCESS, "r", 0, (count,)) for path, count in sizes.items() if count]
    if not files:
        return
    pieces = 1 + sum(sizes.values()) // _AT_ONCE
    few = np.sort(np.concatenate([file["time_ns"][::_THINLY] for file in files]))
    borders = few[np.arange(1, pieces) * len(few) // pieces]
    cuts = [[0, *np.searchsorted(file["time_ns"], borders).tolist(), len(file)] for file in files]
    for number in range(pieces):
        piece = np.concatenate(
            [file[at[number] : at[number + 1]] for file, at in zip(files, cuts, strict=True)]
        )
        yield piece[np.argsort(piece["time_ns"], kind="stable")]


class Owners:
    """Which task made an access: by the kernel's address of it, the last that was born there by then.

    tasks: all of them, by birth, those that are not the program's too.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        rows = sorted(range(len(tasks)), key=lambda row: (tasks[row].address, tasks[row].born_ns))
        self._rows = np.array(rows, np.int64)
        address = np.array([tasks[row].address for row in rows], np.uint64)
        self._born = np.array([tasks[row].born_ns for row in rows], np.int64)
        self._addresses, self._first = np.unique(address, return_index=True)
        self._end = np.append(self._first[1:], len(rows))

    def find(self, task: NDArray[np.uint64], guest_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) the number of the task of each access, -1 for tasks whose birth was not seen."""
        answer = np.full(len(task), -1, np.int64)
        if not len(self._addresses):
            return answer
        for address in np.unique(task):
            place = int(np.searchsorted(self._addresses, address))
            if place == len(self._addresses) or self._addresses[place] != address:
                continue
            first, end = int(self._first[place]), int(self._end[place])
            own = np.flatnonzero(task == address)
            number = np.searchsorted(self._born[first:end], guest_ns[own], side="right") - 1
            answer[own] = self._rows[first + np.maximum(number, 0)]
        return answer
