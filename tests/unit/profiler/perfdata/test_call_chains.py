"""Call chains of perf.data: the user's calls of each sample, by process."""

from pathlib import Path

import duckdb
import pytest

from numaplan.profiler.recording.importing import import_recordings
from tests.support.perfdata_builder import Builder, Event

USER, KERNEL = 2**64 - 512, 2**64 - 128
FIELDS = ("ip", "tid", "time", "addr", "callchain")
HIGH = 2**64 - 0x7FFFF000  # of the kernel
# What a chain holds, and the calls that are told of it, outermost first; the sample is at 0x100.
CHAINS = (
    ([], []),
    ([0x100], []),
    ([0x100, 0x201, 0x301], [0x300, 0x200]),
    ([USER, 0x100, 0x211, 0x301], [0x300, 0x210]),
    ([KERNEL, HIGH, HIGH + 8, USER, 0x401, 0x301], [0x300, 0x400]),  # in a system call
    ([KERNEL, HIGH], []),
    ([USER], []),
    ([USER, 0x100, 0x201, HIGH, 0x301, KERNEL, HIGH], [0x300, 0x200]),  # of which no processor makes one
)


def recording(order: str, first: int) -> Builder:
    builder = Builder([Event(FIELDS, name="page-faults", type=1, config=2)], order)
    for pid in (50, 60):
        builder.comm(pid, pid, "app", 1000 + first, by_exec=True)
        for number, (chain, _) in enumerate(CHAINS):
            values = {"ip": 0x100, "pid": pid, "tid": pid, "time": 2000 + first + number, "addr": 0x10000}
            builder.sample(0, {**values, "callchain": chain})
    return builder


def told(trace: Path) -> list[tuple[str, int, list[int]]]:
    """(process, time, calls from the outermost on) of each sample."""
    with duckdb.connect(str(trace), read_only=True) as opened:
        rows = opened.execute("SELECT call, caller, process, ip FROM calls").fetchall()
        calls = {call: (caller, process, ip) for call, caller, process, ip in rows}
        samples = opened.execute(
            "SELECT process, time_ns, call FROM samples JOIN threads USING (thread) ORDER BY ALL"
        ).fetchall()
    found = []
    for process, time, at in samples:
        stack: list[int] = []
        while at >= 0:
            at, owner, ip = calls[at]
            assert owner == process
            stack.insert(0, ip)
        found.append((process, time, stack))
    return found


@pytest.mark.parametrize("order", ["<", ">"])
def test_calls_are_those_of_the_user(tmp_path: Path, order: str) -> None:
    names = []
    for number in range(2):  # several files: each has calls of its own
        names.append(str(tmp_path / f"perf.{number}"))
        Path(names[-1]).write_bytes(recording(order, 100 * number).file())
    import_recordings(names, tmp_path / "t.db")
    processes = sorted({process for process, _, _ in told(tmp_path / "t.db")})
    assert len(processes) == 2
    times = {time for _, time, _ in told(tmp_path / "t.db")}
    start = min(times)
    assert told(tmp_path / "t.db") == [
        (process, start + 100 * number + at, expected)
        for process in processes
        for number in range(2)
        for at, (_, expected) in enumerate(CHAINS)
    ]


def test_recordings_without_chains_have_no_calls(tmp_path: Path) -> None:
    builder = Builder([Event(FIELDS[:4], name="page-faults", type=1, config=2)])
    builder.comm(50, 50, "app", 1000, by_exec=True)
    builder.sample(0, {"ip": 0x100, "pid": 50, "tid": 50, "time": 2000, "addr": 0x10000})
    (tmp_path / "perf.data").write_bytes(builder.file())
    import_recordings([str(tmp_path / "perf.data")], tmp_path / "t.db")
    assert [stack for _, _, stack in told(tmp_path / "t.db")] == [[]]
