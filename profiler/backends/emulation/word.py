"""The word by which all processes of an emulated program learn whether to record (native/emulate/part.c)."""

import mmap
from pathlib import Path

from ..part import Turn


class SharedWord:
    """In a file of the recording's folder, from NOT_NOW on."""

    FILE = "emulate-wanted"

    def __init__(self, workdir: Path) -> None:
        path = workdir / self.FILE
        path.write_bytes(bytes(mmap.PAGESIZE))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def set(self, turn: Turn) -> None:
        """What holds from now on."""
        self._memory[0] = turn  # little-endian; the other bytes are zero
