"""A program that faults on two threads for as long as it is told, and recordings of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from numaplan.machine import Machine
from numaplan.profiler.backends.perf.faults import FaultsBackend
from numaplan.profiler.trace.reader import Trace

from .commands import BIN, clean_environment, needs, one_line_error
from .outside import children, comm
from .waiting import PATIENCE_S, until

# Faults so many times 64 pages on each of two threads, or until its input ends; says when it is there.
BUSY = """
import itertools, mmap, sys, threading, time
rounds, told = int(sys.argv[1]), threading.Event()
def touch():
    for _ in range(rounds) if rounds else itertools.takewhile(lambda _: not told.is_set(), itertools.count()):
        area = mmap.mmap(-1, 1 << 18)
        area[:] = bytes(1 << 18)
        area.close()
        time.sleep(0.002)
thread = threading.Thread(target=touch)
thread.start()
print("ready", flush=True)
if not rounds:
    threading.Thread(target=lambda: (sys.stdin.read(), told.set())).start()
touch()
thread.join()
print("over", flush=True)
"""
UNTIL_TOLD = [sys.executable, "-c", BUSY, "0"]


def needs_faults() -> None:
    """Skip where perf cannot sample faults."""
    needs("perf")
    capability = FaultsBackend().available(Machine.load("local"))
    if not capability.ok:
        pytest.skip(capability.reason)


def busy_for(rounds: int) -> list[str]:
    return [sys.executable, "-c", BUSY, str(rounds)]


def facts(trace: Path) -> tuple[dict[str, str], int, set[int]]:
    """(meta, samples, process ids) of a trace."""
    with Trace.open(trace) as opened:
        ((samples,),) = opened.rows("SELECT count(*) FROM samples")
        pids = opened.rows("SELECT DISTINCT pid FROM threads JOIN samples USING (thread)")
        return opened.meta, samples, {pid for (pid,) in pids}


def record(folder: Path, *words: str, errors: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """`nprof record` into trace.db."""
    pipe = subprocess.PIPE
    command = [BIN / "nprof", "record", "-o", folder / "trace.db", *words]
    environment = {**clean_environment(), "COLUMNS": "200", "TERM": "xterm"}
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=errors)


def ended_by_itself(result: subprocess.CompletedProcess[bytes]) -> bool:
    """Whether a recording has: what is sampled within a time is chance, and nothing may be."""
    return result.returncode == 0 or "no sample" in one_line_error(result, "nprof", 2)


def record_a_part(folder: Path, *words: str) -> None:
    """A recording that ends while the program goes on to its own end."""
    with record(folder, *words, "--", *UNTIL_TOLD) as recorder:
        assert recorder.stdout is not None and recorder.stdout.readline() == b"ready\n"

        def watched() -> bool:
            assert recorder.poll() is None, recorder.communicate()
            return any(comm(pid) == "perf" for pid in children(recorder.pid))

        until(lambda: not watched())
        output, errors = recorder.communicate(timeout=PATIENCE_S)  # its input ends: the program is told
    assert output == b"over\n"
    result = subprocess.CompletedProcess([], recorder.returncode, output, errors)
    assert ended_by_itself(result)
    if recorder.returncode:
        return
    with Trace.open(folder / "trace.db") as trace:
        ((last,),) = trace.rows("SELECT max(time_ns) FROM samples")
        ((end,),) = trace.rows("SELECT max(end_ns) FROM threads")
    assert last < end
