"""The line that shows how a recording comes along."""

import subprocess
from pathlib import Path

from numaplan.profiler.backends.perf.progress import Meter
from tests.support.perfdata_builder import Builder, Event


def grown(samples: int, lost: int) -> bytes:
    builder = Builder([Event(("tid", "time", "addr"))])
    for number in range(samples):
        builder.comm(5, 5, "app", number)
        builder.sample(0, {"pid": 5, "tid": 5, "time": number, "addr": 64 * number})
    if lost:
        builder.lost(lost, samples)
    builder.features.clear()
    # As perf leaves it while it records: no size, no features behind the data.
    whole = builder.file(size_in_header=0)
    return whole[: whole.rindex(builder.records[-1]) + len(builder.records[-1])]


def test_counts_grow_with_the_file(tmp_path: Path) -> None:
    place = tmp_path / "perf.data"
    meter = Meter(place)
    assert "0 in all" in meter.line([])  # perf has not made it yet
    small, large = grown(10, 0), grown(25, 9)
    place.write_bytes(small[:-7])  # the last record is half written
    assert meter.read() == len(small) - 7
    assert meter.samples == 9
    place.write_bytes(large)
    with subprocess.Popen(
        ["cat"], stdin=subprocess.PIPE
    ) as alone:  # its threads do not come and go as ours may
        line = meter.line([alone.pid])
    assert (meter.samples, meter.lost) == (25, 9)
    assert "25 in all" in line and "9 lost" in line and line.endswith(", 1 threads")


def test_nonsense_is_not_walked_forever(tmp_path: Path) -> None:
    place = tmp_path / "perf.data"
    place.write_bytes(b"PERFILE2" + b"\xff" * 200)
    assert Meter(place).read() == 208
    place.write_bytes(b"x")
    assert Meter(place).read() == 1
    place.write_bytes(b"PERFILE2" + b"\0" * 4096)
    meter = Meter(place)
    assert "threads" not in meter.line([])
    assert meter.samples == 0
