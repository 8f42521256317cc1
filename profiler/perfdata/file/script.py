"""Samples that only perf can print: the lines of `perf script`, made into a plain recording again.

For hardware traces that `perf inject` does not turn. What it writes goes through the decoder like any other.
"""

import os
import re
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from numaplan.common import MachineLacksError

from . import attrs as a

# The order in which perf prints them, whatever the order in which they are asked for.
_ALWAYS = ("pid", "tid", "time", "event", "addr")
_OPTIONAL = ("cpu", "data_src", "weight", "ip", "phys_addr")
_LINE = re.compile(
    rb"\s*(-?\d+)/(-?\d+)\s+(?:\[(-?\d+)\]\s+)?(\d+)\.(\d{9}):\s+(.*?):\s+([0-9a-f]{1,16})\b(.*)"
)
_REFUSED = re.compile(r"Cannot print '(\w+)' field")
_NUMBER = re.compile(rb"[0-9a-f]{1,16}")
_BATCH = 1 << 15
_MOST_EVENTS = 4096
_PIPE_HEADER = struct.pack("<8sQ", b"PERFILE2", 16)
_ATTR, _EVENT_UPDATE, _SAMPLE, _NAME = 64, 78, 9, 2
_USER_MODE = 2
_ATTR_SIZE = 128
_SAMPLE_TYPE = a.IDENTIFIER | a.IP | a.TID | a.TIME | a.ADDR | a.CPU | a.WEIGHT | a.DATA_SRC | a.PHYS_ADDR
_RECORD = np.dtype(
    [
        ("type", "<u4"),
        ("misc", "<u2"),
        ("size", "<u2"),
        ("id", "<u8"),
        ("ip", "<u8"),
        ("pid", "<i4"),
        ("tid", "<i4"),
        ("time", "<u8"),
        ("addr", "<u8"),
        ("cpu", "<i4"),
        ("reserved", "<u4"),
        ("weight", "<u8"),
        ("data_src", "<u8"),
        ("phys_addr", "<u8"),
    ]
)
Row = tuple[int, ...]


def transcribe(
    perf: str, itrace: str, recording: Path, output: Path, seconds: float, progress: Callable[[int], None]
) -> Path:
    """Have perf print the samples of `recording` and write them to `output` as a recording.

    seconds: perf may take so long; progress: called with the number of samples now and then. Raises
    MachineLacksError with perf's messages when it prints none.
    """
    wanted = list(_OPTIONAL)
    messages = ""
    for _attempt in range(len(_OPTIONAL) + 1):
        fields = [*_ALWAYS, *wanted]
        command = [perf, "script", "-f", itrace, "-i", str(recording), "--ns", "-G", "-F", ",".join(fields)]
        count, messages = _run(command, wanted, output, seconds, progress)
        refused = _REFUSED.search(messages)
        if count or refused is None or refused[1] not in wanted:
            break
        wanted.remove(refused[1])
    if not count:
        lines = [line.strip() for line in messages.splitlines() if line.strip()]
        reason = lines[-1][:200] if lines else "it gives no sample"
        hint = f"decode it where it was recorded: perf inject {itrace} -i {recording.name} -o decoded.data"
        raise MachineLacksError(f"perf script cannot decode the hardware trace: {reason}", hint)
    return output


def _run(
    command: list[str], wanted: list[str], output: Path, seconds: float, progress: Callable[[int], None]
) -> tuple[int, str]:
    """Run perf script; returns how many samples it printed, and what it said besides."""
    count = 0
    with tempfile.TemporaryFile() as messages, output.open("wb") as file:
        environment = {**os.environ, "LC_ALL": "C", "PAGER": "cat"}
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages, env=environment
        ) as child:
            timer = threading.Timer(seconds, child.kill)
            timer.start()
            try:
                assert child.stdout is not None
                writer = _Writer(file)
                for row in _rows(child.stdout, wanted, writer.event):
                    writer.add(row)
                    count += 1
                    if count % _BATCH == 0:
                        progress(count)
                writer.flush()
            finally:
                timer.cancel()
                child.kill()
        messages.seek(0)
        return count, messages.read(1 << 16).decode("utf-8", "replace")


def _rows(lines: IO[bytes], wanted: list[str], event: Callable[[bytes], int]) -> Iterator[Row]:
    """(event, ip, pid, tid, time, addr, cpu, weight, data_src, phys_addr) of each line that is a sample."""
    behind = [name for name in ("weight", "ip", "phys_addr") if name in wanted]
    while line := lines.readline(1 << 16):
        found = _LINE.match(line)
        if found is None:
            continue
        pid, tid, cpu, whole, part, name, addr, rest = found.groups()
        columns = rest.split()
        last = columns[len(columns) - len(behind) :] if len(columns) >= len(behind) else []
        source = columns[0] if "data_src" in wanted and columns else b"0"
        if len(last) < len(behind) or not all(map(_NUMBER.fullmatch, (*last, source))):
            continue
        tail = {key: int(word, 10 if key == "weight" else 16) for key, word in zip(behind, last, strict=True)}
        time = int(whole) * 10**9 + int(part)
        small = max(map(abs, (int(pid), int(tid), int(cpu or -1))))
        if time >> 63 or small >> 31:
            continue
        yield (
            event(name),
            tail.get("ip", 0),
            int(pid),
            int(tid),
            time,
            int(addr, 16),
            int(cpu) if cpu else -1,
            tail.get("weight", 0),
            int(source, 16),
            tail.get("phys_addr", 0),
        )


class _Writer:
    """Writes what perf would send through a pipe."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._rows: list[Row] = []
        self._events: dict[bytes, int] = {}
        file.write(_PIPE_HEADER)

    def event(self, name: bytes) -> int:
        """The id of the event with this name, which is announced when it comes first."""
        known = self._events.get(name)
        if known is not None or len(self._events) >= _MOST_EVENTS:
            return known or 1
        self.flush()
        number = self._events[name] = len(self._events) + 1
        head = struct.pack("<2I5Q", 1, _ATTR_SIZE, 9, 1, _SAMPLE_TYPE, 0, 0).ljust(_ATTR_SIZE, b"\0")
        self._record(_ATTR, head + struct.pack("<Q", number))
        text = name[:1000].ljust(len(name[:1000]) // 8 * 8 + 8, b"\0")
        self._record(_EVENT_UPDATE, struct.pack("<2Q", _NAME, number) + text)
        return number

    def add(self, row: Row) -> None:
        """Take a sample."""
        self._rows.append(row)
        if len(self._rows) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the samples taken so far."""
        if not self._rows:
            return
        records = np.zeros(len(self._rows), dtype=_RECORD)
        records["type"], records["misc"], records["size"] = _SAMPLE, _USER_MODE, _RECORD.itemsize
        names = ("id", "ip", "pid", "tid", "time", "addr", "cpu", "weight", "data_src", "phys_addr")
        for name, values in zip(names, zip(*self._rows, strict=True), strict=True):
            records[name] = values
        self._file.write(records.tobytes())
        self._rows = []

    def _record(self, kind: int, body: bytes) -> None:
        self._file.write(struct.pack("<IHH", kind, 0, 8 + len(body)) + body)
