"""The decoder against the installed perf: recordings made here and files that we write, sample by sample."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from numaplan.machine import Machine
from numaplan.profiler.backends.perf.faults import FaultsBackend
from numaplan.profiler.perfdata.decode import Decoded, decode_perf
from tests.support.perfdata_builder import HOSTNAME, Builder, Event

pytestmark = pytest.mark.system

PROGRAM = ["/bin/sh", "-c", "for i in 1 2 3; do ls /usr/bin > /dev/null & done; wait"]
PAGE_FAULTS = ["-e", "page-faults", "-c", "1", "-d"]
Row = tuple[int, int, str, int, int]


@pytest.fixture(scope="module")
def perf() -> str:
    found = shutil.which("perf")
    if found is None:
        pytest.skip("perf is not installed")
    return found


def script(perf: str, path: Path, fields: str) -> list[list[str]]:
    command = [perf, "script", "-i", str(path), "--ns", "-G", "-F", fields]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return [line.split() for line in done.stdout.splitlines() if line.strip()]


def ours(decoded: Decoded) -> list[Row]:
    columns = [decoded.samples[name].tolist() for name in ("tid", "time", "event", "addr", "ip")]
    return sorted((t, time, decoded.events[e], a, ip) for t, time, e, a, ip in zip(*columns, strict=True))


def theirs(rows: list[list[str]]) -> list[Row]:
    found = []
    for tid, stamp, event, addr, ip, *_ in rows:
        seconds, nanoseconds = stamp.rstrip(":").split(".")
        time = int(seconds) * 10**9 + int(nanoseconds)
        found.append((int(tid), time, event.removesuffix(":"), int(addr, 16), int(ip, 16)))
    return sorted(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        PAGE_FAULTS,
        [*PAGE_FAULTS, "-z"],
        [*PAGE_FAULTS, "-z", "-m", "2"],
        [*PAGE_FAULTS, "-k", "CLOCK_MONOTONIC", "--sample-cpu", "--phys-data"],
        ["-e", "page-faults,minor-faults,context-switches", "-c", "1", "-d"],
        ["-e", "page-faults,minor-faults", "-c", "1", "-d", "--sample-identifier"],
        [*PAGE_FAULTS, "--call-graph", "fp"],
        [*PAGE_FAULTS, "--call-graph", "dwarf,512", "-z"],
        [*PAGE_FAULTS, "--threads"],
        [*PAGE_FAULTS, "--threads", "-z"],
        ["-e", "{page-faults,cpu-clock,task-clock}:S", "-c", "1", "-d"],
        [*PAGE_FAULTS, "-a"],
        [*PAGE_FAULTS, "-W", "--data-page-size", "--code-page-size"],
        [*PAGE_FAULTS, "--namespaces", "--all-cgroups", "--buildid-mmap"],
        [*PAGE_FAULTS, "-k", "boottime", "--switch-events", "--tail-synthesize"],
        [*PAGE_FAULTS, "--user-regs=ip,sp", "-I", "--transaction"],
        ["-e", "page-faults:u,cpu-clock/period=250007/k,dummy", "-c", "7", "-d", "-P", "-T"],
    ],
    ids=" ".join,
)
def test_recordings_made_here(perf: str, tmp_path: Path, options: list[str]) -> None:
    if not FaultsBackend().available(Machine.load("local")).ok:
        pytest.skip("perf cannot record here")
    path = tmp_path / "perf.data"
    done = subprocess.run([perf, "record", "-q", *options, "-o", str(path), *PROGRAM], check=False)
    if done.returncode:
        pytest.skip("this perf does not know these options")
    decoded = decode_perf(path)
    assert len(decoded.samples["time"]) > 10
    try:
        rows = script(perf, path, "tid,time,event,addr,ip")
    except subprocess.CalledProcessError as error:
        if "-a" not in options:  # of all cpus it seldom cannot
            raise
        pytest.skip(f"perf cannot read its own recording: {error.stderr.strip()[-200:]}")
    assert ours(decoded) == theirs(rows)
    assert not decoded.warnings


def test_a_recording_through_a_pipe(perf: str, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    with path.open("wb") as file:
        done = subprocess.run(
            [perf, "record", "-q", *PAGE_FAULTS, "-o", "-", *PROGRAM], stdout=file, check=False
        )
    if done.returncode:
        pytest.skip("perf cannot record here")
    decoded = decode_perf(path)
    assert decoded.header["pipe"] and not decoded.warnings
    assert ours(decoded) == theirs(script(perf, path, "tid,time,event,addr,ip"))


@pytest.mark.parametrize(("order", "form"), [("<", "file"), ("<", "zstd"), (">", "file")])
@pytest.mark.parametrize("weight", ["weight", "weight_struct"])
def test_files_that_we_write(perf: str, tmp_path: Path, order: str, form: str, weight: str) -> None:
    fields = ("identifier", "ip", "tid", "time", "addr", "period", weight, "data_src", "phys_addr")
    loads = Event(fields, ids=(1, 2), name="cpu/mem-loads/P")
    stores = Event(fields, ids=(3,), name="cpu/mem-stores/P", config=0x82D0)
    builder = Builder([loads, stores], order=order)
    builder.comm(7, 7, "app", 10**9)
    for index in range(200):
        number = 1 + index % 3
        values = {"id": number, "pid": 7, "tid": 7 + index % 4, "time": 10**9 + index, "addr": index << 6}
        values |= {
            "ip": 0x400000 + index,
            "weight": 3 * index,
            "data_src": 0x68100142,
            "phys_addr": index << 12,
        }
        builder.sample(number // 3, values)
    builder.features[HOSTNAME] = builder.text_feature("box")  # perf looks for it to tell word sizes apart
    path = tmp_path / "perf.data"
    if form == "zstd":
        builder.compress(cut=60000)  # perf wants some event out of every compressed record
        builder.features[27] = builder.pack("5I", 1, 1, 1, 4, 528384)
    path.write_bytes(builder.file())
    decoded = decode_perf(path)
    assert ours(decoded) == theirs(script(perf, path, "tid,time,event,addr,ip"))
    rows = script(perf, path, "addr,phys_addr,weight,data_src")
    wanted = [(int(row[0], 16), int(row[1], 16), int(row[-2]), int(row[-1], 16)) for row in rows]
    columns = [decoded.samples[name].tolist() for name in ("addr", "data_src", "weight", "phys_addr")]
    assert list(zip(*columns, strict=True)) == wanted
    assert all(re.search(r"L1 hit", " ".join(row)) for row in rows)
