"""Records beside samples: names that only perf's list of threads tells, and what is skipped by its size."""

from pathlib import Path

import pytest

from numaplan.profiler.perfdata.decode import decode_perf
from tests.support.perfdata_builder import Builder, Event
from tests.unit.profiler.perfdata.test_decoder import BASIC, write


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("claimed", [4, 2**63])
def test_threads_that_no_record_names_are_called_as_perf_listed_them(
    tmp_path: Path, order: str, claimed: int
) -> None:
    builder = Builder([Event(BASIC)], order=order)
    listed = [(5, b"listed"), (6, b"old name"), (7, b""), (2**64 - 1, b"none"), (8, b"a" * 16)]
    pairs = b"".join(builder.pack("Q16s", *one) for one in listed)
    builder.record(73, builder.pack("Q", claimed) + pairs)
    builder.record(73, b"")
    builder.comm(5, 6, "named", 90)
    for tid in (5, 6, 7, 8):
        builder.sample(0, {"pid": 5, "tid": tid, "time": 100})
    decoded = decode_perf(write(tmp_path, builder.file()))
    last = "a" * 16 if claimed > 4 else ""  # counts are believed as far as there are entries
    assert {one.tid: one.name for one in decoded.threads} == {5: "listed", 6: "named", 7: "", 8: last}
    assert not decoded.warnings


# Bodies as perf and the kernel write them, before the tail that the kernel's (type below 64) have.
SKIPPED = {
    "THROTTLE": (5, "3Q", (1, 2, 3)),
    "READ": (8, "2I3Q", (5, 5, 1, 2, 3)),
    "AUX": (11, "3Q", (0, 4096, 1)),
    "ITRACE_START": (12, "2I", (5, 5)),
    "SWITCH": (14, "", ()),
    "SWITCH_CPU_WIDE": (15, "2I", (5, 5)),
    "NAMESPACES": (16, "2IQ4Q", (5, 5, 2, 1, 2, 3, 4)),
    "KSYMBOL": (17, "QI2H16s", (1 << 63, 64, 1, 0, b"bpf_prog_1")),
    "BPF_EVENT": (18, "2HI8s", (1, 0, 7, b"tagtagta")),
    "CGROUP": (19, "Q16s", (7, b"/sys/fs/cgroup")),
    "TEXT_POKE": (20, "Q2H4s", (1 << 63, 2, 2, b"\x90\x90\xcc\xcc")),
    "AUX_OUTPUT_HW_ID": (21, "Q", (3,)),
    "FINISHED_ROUND": (68, "", ()),
    "ID_INDEX": (69, "5Q", (1, 9, 0, 0, 5)),
    "AUXTRACE_ERROR": (72, "6Q", (1, 2, 3, 4, 5, 6)),
    "CPU_MAP": (74, "2H2HQ", (1, 1, 8, 0, 15)),
    "STAT_CONFIG": (75, "3Q", (1, 2, 3)),
    "STAT": (76, "Q2I3Q", (1, 0, 0, 1, 2, 3)),
    "STAT_ROUND": (77, "2Q", (0, 9)),
    "FINISHED_INIT": (82, "", ()),
    "BPF_METADATA": (84, "16s", (b"name",)),
    "SCHEDSTAT_CPU": (85, "4Q", (9, 0, 15, 1)),
}


@pytest.mark.parametrize("form", ["file", "pipe", "zstd"])
@pytest.mark.parametrize("name", SKIPPED)
def test_records_of_no_use_here_change_nothing(tmp_path: Path, name: str, form: str) -> None:
    number, layout, values = SKIPPED[name]
    builder = Builder([Event(BASIC)])
    for index in range(3):
        builder.comm(5, 5 + index, f"t{index}", index)
        builder.sample(0, {"pid": 5, "tid": 5 + index, "addr": index, "time": index})
        builder.record(number, builder.pack(layout, *values) + (builder.tail({}) if number < 64 else b""))
    if form == "zstd":
        builder.compress(cut=50)
    decoded = decode_perf(write(tmp_path, builder.pipe() if form == "pipe" else builder.file()))
    assert decoded.samples["addr"].tolist() == [0, 1, 2]
    assert [one.name for one in decoded.threads] == ["t0", "t1", "t2"]
    assert (decoded.maps, decoded.losses, decoded.lost, decoded.warnings) == ((), (), 0, ())
    assert decoded.header["records"][number] == 3
