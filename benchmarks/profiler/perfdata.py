"""Decoding a perf.data file into arrays and into a trace, against `perf script` printing the same fields.

Also what both take in memory, and what a trace of many samples takes on disk and answers in.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from numaplan.common import MachineLacksError
from numaplan.profiler import Trace, TraceWriter
from numaplan.profiler.perfdata.decode import decode_perf
from numaplan.profiler.recording.importing import import_recordings
from tests.support.perfdata_builder import Builder, many_samples

SAMPLES = 2_000_000
MANY = 10_000_000
_REPEATS = 5
_FIELDS = "tid,time,event,addr,weight,data_src"
_COMPRESSED_FEATURE = 27
_BLOCK = 1 << 20
_QUERY = "SELECT thread, level, count(*) FROM samples GROUP BY thread, level"
# Run in a process of its own: the most memory that it held, besides the arrays that were asked for.
_MEASURE = """
import json, sys, time
from pathlib import Path
from numaplan.profiler.recording.importing import import_recordings
from numaplan.profiler import decode_perf
start = time.perf_counter()
if sys.argv[1] == "decode":
    arrays = sum(column.nbytes for column in decode_perf(sys.argv[2]).samples.values())
else:
    arrays, _ = 0, import_recordings([sys.argv[2]], Path(sys.argv[3]))
# Not ru_maxrss, in which what our parent held is counted.
lines = Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024
print(json.dumps({"seconds": time.perf_counter() - start, "peak": peak, "arrays": arrays}))
"""


def run() -> dict[str, Any]:
    """Samples a second of CPU time of both on plain and zstd files, and the ratios (best of five, in turns).

    Also memory, and what a large trace takes.
    """
    perf = shutil.which("perf")
    if perf is None:
        raise MachineLacksError("perf is not installed", "apt-get install linux-perf")
    result: dict[str, Any] = {"samples": SAMPLES}
    with tempfile.TemporaryDirectory(prefix="numaplan-benchmark-") as name:
        folder = Path(name)
        for kind, path in _write(folder).items():
            rounds = [
                [
                    _cpu_of(partial(decode_perf, path)),
                    _cpu_of(partial(_script, perf, path)),
                    _cpu_of(partial(import_recordings, [str(path)], folder / f"{kind}-{number}.db")),
                ]
                for number in range(_REPEATS)
            ]
            ours, theirs, into = (min(times) for times in zip(*rounds, strict=True))
            result[f"{kind}_samples_per_second"] = round(SAMPLES / ours)
            result[f"{kind}_perf_script_samples_per_second"] = round(SAMPLES / theirs)
            result[f"{kind}_ratio"] = round(theirs / ours, 1)
            result[f"{kind}_into_trace_ratio"] = round(theirs / into, 1)
            path.unlink()
        result["memory"] = _memory(folder)
        result["trace"] = _trace(folder / "trace.db")
    return result


def _write(folder: Path) -> dict[str, Path]:
    event, records = many_samples(SAMPLES)
    paths = {}
    for kind in ("plain", "zstd"):
        builder = Builder([event])
        builder.comm(4000, 4000, "app", 1)
        builder.records.append(records.tobytes())
        if kind == "zstd":
            builder.compress(cut=60000)
            builder.features[_COMPRESSED_FEATURE] = builder.pack("5I", 1, 1, 1, 4, 528384)
        paths[kind] = folder / f"{kind}.data"
        paths[kind].write_bytes(builder.file())
    return paths


def _memory(folder: Path) -> dict[str, Any]:
    """Peak memory above the arrays asked for, MB, on a file of MANY samples."""
    path = folder / "many.data"
    event, records = many_samples(SAMPLES)
    builder = Builder([event])
    builder.comm(4000, 4000, "app", 1)
    with path.open("wb") as file:
        # A pipe's form has no sizes in its head, so that samples can simply follow.
        file.write(builder.pipe())
        length = int(records["time"][-1] - records["time"][0]) + 100
        for _part in range(MANY // SAMPLES):
            file.write(records.tobytes())
            records["time"] += length
    found: dict[str, Any] = {"samples": MANY}
    for what in ("decode", "import"):
        command = [sys.executable, "-c", _MEASURE, what, str(path), str(folder / "trace.db")]
        done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "LC_ALL": "C"})
        answer = json.loads(done.stdout)
        found[f"{what}_megabytes_above_arrays"] = round((answer["peak"] - answer["arrays"]) / 1e6)
        found[f"{what}_samples_per_second"] = round(MANY / answer["seconds"])
    found["trace_megabytes"] = round((folder / "trace.db").stat().st_size / 1e6)
    path.unlink()
    return found


def _trace(path: Path) -> dict[str, Any]:
    """Writing MANY samples of 32 threads straight into a trace, and asking for them by thread and level."""
    random = np.random.default_rng(1)
    thread = random.integers(0, 32, _BLOCK).astype(np.int32)
    block: dict[str, Any] = {
        "time_ns": np.cumsum(random.integers(50, 5000, _BLOCK)),
        "thread": thread,
        "cpu": thread.astype(np.int32),
        "node": (thread // 8).astype(np.int32),
        "addr": (0x7F0000000000 + 8 * random.integers(0, 1 << 30, _BLOCK)).astype(np.uint64),
        "phys_addr": (64 * random.integers(0, 1 << 30, _BLOCK)).astype(np.uint64),
        "ip": (0x400000 + random.integers(0, 1 << 16, _BLOCK)).astype(np.uint64),
        "event": random.integers(0, 2, _BLOCK).astype(np.uint8),
        "is_write": random.random(_BLOCK) < 0.3,
        "level": random.integers(1, 8, _BLOCK).astype(np.uint8),
        "latency": random.integers(3, 900, _BLOCK).astype(np.int32),
        "region": random.integers(0, 200, _BLOCK).astype(np.int32),
    }
    start = _cpu_seconds()
    with TraceWriter(path) as writer:
        while writer.sample_count < MANY:
            writer.add_samples(block)
            block["time_ns"] = block["time_ns"] + int(block["time_ns"][-1])
        count = writer.sample_count
    seconds = _cpu_seconds() - start
    with Trace.open(path) as trace:
        query = _best(trace.rows, _QUERY)
    return {
        "megabytes_for_ten_million": round(path.stat().st_size * 1e7 / count / 1e6),
        "written_per_second": round(count / seconds),
        "query_seconds": round(query, 3),
    }


def _script(perf: str, path: Path) -> None:
    command = [perf, "script", "-i", str(path), "-F", _FIELDS]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def _best(work: Callable[..., object], *arguments: object) -> float:
    """Seconds of CPU time of the cheapest of several."""
    return min(_cpu_of(partial(work, *arguments)) for _ in range(_REPEATS))


def _cpu_of(work: Callable[[], object]) -> float:
    """Seconds of CPU time of this process and those it waits for."""
    start = _cpu_seconds()
    work()
    return _cpu_seconds() - start


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
