"""Which pages of code are the loader's or a thread runtime's, for the plugin (lab/native/plugin/runtime.h).

The guest runs the host's files, so a page of code is known by the words in it, whichever process runs it.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.common import native_part
from numaplan.profiler import runtime_code

PIECE = np.dtype([("sum", "<u8"), ("from", "<u4"), ("to", "<u4")])
PAGE = 4096
_FACTOR = 0x9E3779B97F4A7C15  # runtime.c has the same
_WORDS = PAGE // 8
_LISTED = re.compile(r"=> (/\S.*)")
_LDCONFIG = ("/sbin/ldconfig", "-p")
_NAMES = ("ld-*", "ld.*", "libc.*", "libc-*", "libgomp*", "libomp*", "libiomp5*", "libpthread*")

Pieces = NDArray[np.void]


def write_runtimes(target: Path, program: str, environment: Mapping[str, str]) -> None:
    """The pieces of all runtimes that a program may load."""
    pieces = [pieces_of(path) for path in sorted(_libraries(program, environment))]
    found = np.unique(np.concatenate([np.zeros(0, PIECE), *pieces]))
    found.tofile(target)


def pieces_of(library: Path) -> Pieces:
    """The sum of the words of each page with a runtime's code, and the piece that is the runtime's."""
    ranges = runtime_code(library)
    if not ranges:
        return np.zeros(0, PIECE)
    data = library.read_bytes()
    words = np.frombuffer(data + bytes(-len(data) % PAGE), "<u8").reshape(-1, _WORDS)
    powers = np.array([pow(_FACTOR, _WORDS - at, 1 << 64) for at in range(_WORDS)], np.uint64)
    rows = [
        (page, max(start - page * PAGE, 0), min(end - page * PAGE, PAGE))
        for start, end in ranges
        for page in range(start // PAGE, -(-end // PAGE))
        if page < len(words)
    ]
    found = np.zeros(len(rows), PIECE)
    page, found["from"], found["to"] = np.array(rows, np.int64).reshape(-1, 3).T
    found["sum"] = (words * powers).sum(axis=1, dtype=np.uint64)[page]
    return found


def _libraries(program: str, environment: Mapping[str, str]) -> Iterator[Path]:
    """Files that may be runtimes: those that the loader knows, those beside the program, and our library."""
    beside = Path(program).resolve().parent
    folders = [beside, beside.parent / "lib", *map(Path, environment.get("LD_LIBRARY_PATH", "").split(":"))]
    found = {native_part("profiler", "preload.so")}
    for folder in {Path("/lib"), Path("/lib64"), Path("/usr/lib"), *folders} - {Path()}:
        found.update(path for name in _NAMES for path in folder.glob(name))
    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(_LDCONFIG, capture_output=True, text=True, errors="replace", timeout=30)
        found.update(map(Path, _LISTED.findall(listed.stdout)))
    yield from {path for path in found if path.is_file() and os.access(path, os.R_OK)}
