"""A whole analysis of trace files of 1, 10 and 100 million samples: time and memory, in a child process."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

from benchmarks import ROOT
from numaplan.analyzer import analyze_trace
from numaplan.common import NotSoError
from numaplan.machine import Machine
from numaplan.profiler import EVENT_CODE, LEVEL_CODE, Trace, TraceWriter

THREADS = 16
CHUNK = 1 << 20
OWN = 22  # log2 of the bytes that each thread owns
BASE = 1 << 40


def measure(millions: list[int]) -> dict[str, Any]:
    """CPU seconds, seconds a million samples, and peak memory of `analyze_trace` for each size."""
    answer: dict[str, Any] = {}
    for size in millions:
        with TemporaryDirectory() as folder:
            path = write(Path(folder) / "trace.db", size * 1_000_000)
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.analyzer.large_traces", str(path)],
                capture_output=True,
                cwd=ROOT,
                check=False,
            )
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise NotSoError(
                f"{size} M samples were not analyzed: {last}", "free memory, or take fewer samples"
            )
        row = json.loads(done.stdout)
        answer[f"{size} M samples"] = {**row, "seconds a million": row["seconds"] / size}
    return answer


def write(path: Path, samples: int) -> Path:
    """A trace of threads that mostly use a hot part of their own memory, and at times a neighbour's."""
    rng = np.random.default_rng(0)
    with TraceWriter(path) as writer:
        writer.add_rows("machine", [(Machine.load("4x4").to_json().decode(),)])
        names = ["0", *(f"0.{index}" for index in range(1, THREADS))]
        writer.add_rows("threads", [(i, "p0", name, i, 1, "", 0, -1) for i, name in enumerate(names)])
        size = THREADS << OWN
        writer.add_rows("regions", [(0, "p0", "heap", "program+0x9", "", BASE, size, 0, 1, 0, -1)])
        for start in range(0, samples, CHUNK):
            writer.add_samples(_block(rng, start, min(CHUNK, samples - start)))
        writer.set_meta({"backend": "emulate", "period": 1000, "duration_ns": samples * 1000})
    return path


def _block(rng: np.random.Generator, start: int, count: int) -> dict[str, np.ndarray[Any, Any]]:
    thread = rng.integers(0, THREADS, count)
    kind = rng.random(count)
    owner = (thread + (kind < 0.1)) % THREADS
    reach = np.where(kind < 0.7, 1 << (OWN - 4), 1 << OWN)
    is_write = rng.random(count) < 0.3
    return {
        "time_ns": start * 1000 + np.sort(rng.integers(0, count * 1000, count)),
        "thread": thread.astype(np.int32),
        "cpu": np.full(count, -1, np.int32),
        "node": np.full(count, -1, np.int32),
        "addr": (BASE + (owner << OWN) + (rng.random(count) * reach).astype(np.int64)).astype(np.uint64),
        "phys_addr": np.zeros(count, np.uint64),
        "ip": np.full(count, 4096, np.uint64),
        "event": np.where(is_write, EVENT_CODE["store"], EVENT_CODE["load"]).astype(np.uint8),
        "is_write": is_write,
        "level": np.full(count, LEVEL_CODE["l1"], np.uint8),
        "latency": np.full(count, -1, np.int32),
        "region": np.zeros(count, np.int32),
    }


def analyzed(path: Path) -> dict[str, float]:
    """CPU seconds and peak memory of one analysis, in a process that does nothing else."""
    start = process_time()
    with Trace.open(path) as trace:
        events = analyze_trace(trace).events
    # Not getrusage: its peak survives exec, so it would be that of whoever started this process.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0]) / 1024
    return {"seconds": process_time() - start, "peak memory, MiB": peak, "events": events}


if __name__ == "__main__":
    print(json.dumps(analyzed(Path(sys.argv[1]))))
