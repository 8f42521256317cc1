"""Decoding a perf.data file into arrays, against `perf script` printing the same fields."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numaplan.common import MachineLacksError
from numaplan.profiler.perfdata import decode_perf
from tests.replay.builder import Builder, many_samples

SAMPLES = 2_000_000
_REPEATS = 3
_FIELDS = "tid,time,event,addr,weight,data_src"
_COMPRESSED_FEATURE = 27


def run() -> dict[str, Any]:
    """Samples a second of both on plain and zstd files, and the ratios (best of three; perf once)."""
    perf = shutil.which("perf")
    if perf is None:
        raise MachineLacksError("perf is not installed", "apt-get install linux-perf")
    result: dict[str, Any] = {"samples": SAMPLES}
    with tempfile.TemporaryDirectory(prefix="numaplan-benchmark-") as folder:
        for kind, path in _write(Path(folder)).items():
            ours = min(_seconds(decode_perf, path) for _ in range(_REPEATS))
            theirs = _seconds(_script, perf, path)
            result[f"{kind}_samples_per_second"] = round(SAMPLES / ours)
            result[f"{kind}_perf_script_samples_per_second"] = round(SAMPLES / theirs)
            result[f"{kind}_ratio"] = round(theirs / ours, 1)
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


def _script(perf: str, path: Path) -> None:
    command = [perf, "script", "-i", str(path), "-F", _FIELDS]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def _seconds(work: Callable[..., object], *arguments: object) -> float:
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start
