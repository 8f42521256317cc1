"""What the plugin, the kernel's trace and the clocks left of a run in the guest, made a recording."""

import errno
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.common import MachineLacksError, UsageError
from numaplan.lab.guest.guest import Outcome
from numaplan.lab.recording import backend as lab_backend
from numaplan.lab.recording.backend import LabBackend
from numaplan.lab.recording.clocks import AccessLine, GuestClock
from numaplan.lab.recording.options import read_options
from numaplan.lab.recording.result import Run, guest_recording
from numaplan.lab.recording.stream import ACCESS, Owners, read_accesses, read_facts
from numaplan.lab.runs.tasks import Task
from numaplan.lab.setup.doctor import Check, Diagnosis
from numaplan.machine import Machine
from numaplan.profiler import LEVEL_CODE, RecordedPart, Recording, RecordRequest
from numaplan.profiler.backends.base import PerfChoices, ProgramStart
from numaplan.profiler.backends.choice import backend_names, choose_backend

MACHINE = Machine.load("2x2")
HOST, GUEST = 10**12, 5 * 10**9  # the host's clock when the guest's shows this


def at(guest_seconds: float) -> int:
    """By the host's clock."""
    return HOST + round(guest_seconds * 1e9) - GUEST


def write_accesses(folder: Path, vcpu: int, *rows: tuple[float, int, int, int, int, str]) -> None:
    """Rows of guest seconds, task, address, node, whether a store, level."""
    data = np.zeros(len(rows), ACCESS)
    for row, (seconds, task, address, node, store, level) in zip(data, rows, strict=True):
        row["time_ns"], row["task"], row["address"], row["physical"] = at(seconds), task, address, address * 2
        row["node"], row["store"], row["level"], row["cpu"] = node, store, LEVEL_CODE[level], vcpu
        row["reach"] = 15 * (level == "local_dram")
    data.tofile(folder / f"recorded-{vcpu}")


# init starts app (100), which makes a thread (102) and a process (104), whose place another (106) takes.
TRACE = """\
 init-1       [000] .....     5.1: task_newtask: pid=100 comm=init clone_flags=1200000 oom_score_adj=0
 init-1       [000] .....     5.1: new: (wake_up_new_task+0x0/0x2d0) task=0x1000
 init-100     [001] .....     5.15: exec: (begin_new_exec+0x0/0xb40)
 app-100     [001] .....     5.3: task_newtask: pid=102 comm=app clone_flags=3d0f00 oom_score_adj=0
 app-100     [001] .....     5.3: new: (wake_up_new_task+0x0/0x2d0) task=0x2000
 app-100     [001] .....     5.4: task_newtask: pid=104 comm=app clone_flags=1200000 oom_score_adj=0
 app-100     [001] .....     5.4: new: (wake_up_new_task+0x0/0x2d0) task=0x4000
 app-104     [001] .....     5.6: exit: (do_exit+0x0/0xb50)
 app-100     [001] .....     5.7: task_newtask: pid=106 comm=app clone_flags=1200000 oom_score_adj=0
 app-100     [001] .....     5.7: new: (wake_up_new_task+0x0/0x2d0) task=0x4000
"""
COUNTS = b"""numaplan-lab-counts 5
0 1000 0 0:40 r0:30 r1:10 r2:5 r10:3 r25:4
stage 1000
1 4000 0 0:20 r0:20
stage 4000
0 1000 0 0:20 r0:20
1 2000 0 1:10 r1:10
1 4000 0 1:10 r0:10
end
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    guest = tmp_path / "guest"
    guest.mkdir()
    (tmp_path / "trace").write_text(TRACE)
    (guest / "recorded").write_text("node 0 0 4096\nnode 1 1000000 4096\nfootprint 8192\nerror 0 lost 0\n")
    write_accesses(
        guest,
        0,
        (5.2, 0x1000, 0xA0, 0, 0, "l1"),
        (5.25, 0x9000, 0xF0, 0, 0, "l1"),  # the agent's
        (5.5, 0x4000, 0xB0, 0, 0, "l2"),
        (5.55, 0x1000, 0xC0, 1, 1, "local_dram"),
    )
    write_accesses(guest, 3, (5.35, 0x2000, 0xD0, 0, 1, "l3"), (5.8, 0x4000, 0xE0, 1, 0, "l1"))
    end = 6 * 10**9
    outcome = Outcome(7, False, 1.0, {}, COUNTS, ((GUEST, HOST), (end, HOST + end - GUEST)))
    (tmp_path / "identity").mkdir()
    return Run(outcome, guest, tmp_path / "trace", tmp_path / "identity", MACHINE, 2.0)


def recording_of(run: Run, part: RecordedPart | None = None) -> Recording:
    request = RecordRequest(["app"], run.guest, MACHINE, {}, period=20, part=part or RecordedPart())
    return guest_recording(run, request, read_options({}, MACHINE), lambda _what, _share: None)


def test_accesses_are_of_the_tasks_that_made_them(run: Run) -> None:
    recording = recording_of(run)
    (block,) = recording.blocks
    assert block.addr.tolist() == [0xA0, 0xD0, 0xB0, 0xC0, 0xE0]
    assert block.tid.tolist() == [100, 102, 104, 100, 106]
    assert block.pid.tolist() == [100, 100, 104, 100, 106]
    assert block.time_ns.tolist() == [0, 20, 40, 60, 80]  # one sample in 20 accesses
    assert (block.cpu.tolist(), block.node.tolist()) == ([0, 3, 0, 0, 3], [0, 1, 0, 0, 1])
    assert block.phys_addr.tolist() == [2 * address for address in block.addr.tolist()]
    assert block.is_write.tolist() == [False, True, False, True, False]
    assert recording.exit_code == 7 and recording.spans is None


def test_threads_live_as_the_kernel_says(run: Run) -> None:
    found = {thread.tid: (thread.pid, thread.start_ns, thread.end_ns) for thread in recording_of(run).threads}
    assert found == {100: (100, 0, 100), 102: (100, 20, 100), 104: (104, 40, 80), 106: (106, 80, 100)}


def test_counts_are_by_thread(run: Run) -> None:
    totals: dict[tuple[int, str], float] = {}
    for _time, _pid, tid, event, value in recording_of(run).counters:
        totals[tid, event] = totals.get((tid, event), 0) + value
    assert [totals[tid, "loads"] for tid in (100, 102, 104, 106)] == [50, 0, 20, 10]
    assert [totals[tid, "stores"] for tid in (100, 102)] == [10, 10]
    assert totals[100, "l1_misses"] == 5
    assert totals[100, "llc_misses_at_64K"] == 7 and totals[100, "llc_misses_at_128K"] == 0


def test_facts_beside_the_samples(run: Run) -> None:
    notes = recording_of(run).notes
    assert notes["node_memory"] == "0:0-1000,1:f4240-f5240"
    assert (notes["footprint"], notes["clock"], notes["emulate.host_seconds"]) == (
        "8192",
        "accesses",
        "2.000",
    )


@pytest.mark.parametrize(
    ("part", "spans"),
    [
        (RecordedPart(skip_accesses=40), [(40, 1 << 62)]),
        (RecordedPart(take_accesses=30), [(0, 30)]),
        (RecordedPart(skip_accesses=40, take_accesses=30), [(40, 70)]),
    ],
)
def test_a_part_by_accesses(run: Run, part: RecordedPart, spans: list[tuple[int, int]]) -> None:
    assert recording_of(run, part).spans == spans


def test_a_part_by_the_hosts_clock(run: Run) -> None:
    timed = Run(**{**vars(run), "spans": [(at(5.3), at(5.52))]})
    assert recording_of(timed).spans == [(20, 60)]
    assert recording_of(Run(**{**vars(run), "spans": []})).spans == []


def test_a_full_disk_is_told(run: Run) -> None:
    (run.guest / "recorded").write_text(f"error {errno.ENOSPC} lost 5\n")
    with pytest.raises(UsageError, match="No space left"):
        read_facts(run.guest)
    for damaged in ("error x lost 5\n", "", "node 1\n"):
        (run.guest / "recorded").write_text(damaged)
        with pytest.raises(UsageError, match="left no recording"):
            read_facts(run.guest)


def test_accesses_of_all_cpus_come_in_order_of_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numaplan.lab.recording.stream._AT_ONCE", 10)
    monkeypatch.setattr("numaplan.lab.recording.stream._THINLY", 3)
    assert list(read_accesses(tmp_path)) == []
    random = np.random.default_rng(5)
    times = random.integers(0, 1000, (3, 40))
    for vcpu, own in enumerate(times):
        data = np.zeros(len(own), ACCESS)
        data["time_ns"] = np.sort(own)
        data.tofile(tmp_path / f"recorded-{vcpu}")
    pieces = list(read_accesses(tmp_path))
    assert len(pieces) > 5
    assert np.concatenate(pieces)["time_ns"].tolist() == np.sort(times.ravel()).tolist()


def test_a_place_in_memory_is_the_last_tasks_that_was_born_there() -> None:
    tasks = [
        Task(7, 1, False, "a", 0x20, 100),
        Task(8, 1, False, "b", 0x10, 50),
        Task(9, 1, False, "c", 0x20, 300),
    ]
    owner = Owners(tasks).find(
        np.array([0x20, 0x20, 0x20, 0x10, 0x30], np.uint64), np.array([90, 299, 300, 60, 60])
    )
    assert owner.tolist() == [0, 0, 2, 1, -1]
    assert Owners([]).find(np.array([1], np.uint64), np.array([1])).tolist() == [-1]


@given(st.integers(0, 10**15), st.integers(1, 10**12), st.floats(-5e-4, 5e-4), st.integers(0, 10**12))
def test_clocks_there_and_back(host: int, passed: int, drift: float, time_ns: int) -> None:
    clock = GuestClock(((GUEST, host), (GUEST + passed, host + round(passed * (1 + drift)))))
    times = np.array([GUEST, GUEST + passed, GUEST + min(time_ns, passed)], np.int64)
    assert clock.host(times)[:2].tolist() == [host, host + round(passed * (1 + drift))]
    assert np.abs(clock.guest(clock.host(times)) - times).max() <= 1


@given(
    st.lists(st.integers(0, 1000), max_size=30),
    st.integers(1, 50),
    st.lists(st.integers(0, 1000), max_size=9),
)
def test_the_line_of_accesses_rises(moments: list[int], each: int, times: list[int]) -> None:
    total = len(moments) * each
    line = AccessLine(np.array(moments, np.int64), each, total)
    found = line(np.sort(np.array(times, np.int64)))
    assert (np.diff(found) >= 0).all() and ((found >= 0) & (found <= total)).all()
    own = line(np.array(sorted(set(moments)), np.int64))
    assert (np.diff(own) >= each).all()


@pytest.mark.parametrize(
    ("given_", "problem"),
    [({"seed": "1"}, "seed"), ({"memory": "lots"}, "memory"), ({"l1": "1"}, "l1"), ({"turn": "1"}, "turn")],
)
def test_wrong_settings_are_named(given_: dict[str, str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        read_options(given_, MACHINE)


def test_settings() -> None:
    usual = read_options({}, MACHINE)
    assert usual.memory_mib == 2048 and {"l1=64:8", "turn=1000", "l3_inclusive=yes"} <= set(usual.plugin)
    plain = read_options({"cache": "off", "memory": "3G", "turn": "500"}, MACHINE)
    assert (plain.memory_mib, set(plain.plugin)) == (3072, {"turn=500", "page_use=on"})
    fewer = read_options({"transfers": "off", "page_use": "off", "reach": "off"}, MACHINE)
    assert {"transfers=off", "page_use=off"} <= set(fewer.plugin)
    assert not any(word.startswith("llc_") for word in fewer.plugin)


def test_the_backend_is_found_by_its_name() -> None:
    assert "lab" in backend_names()
    with pytest.raises(UsageError, match="--pid: backend lab"):
        choose_backend("lab", MACHINE, PerfChoices(pids=(1,)))


@pytest.mark.parametrize(
    ("checks", "fix"),
    [
        (
            [Check("qemu", True, "version 7.2"), Check("kernel", False, "no kernel yet", "run 'nlab setup'")],
            "nlab setup",
        ),
        ([Check("qemu", False, "not installed", "as root: apt-get install x")], "as root: apt-get install x"),
    ],
)
def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, checks: list[Check], fix: str) -> None:
    monkeypatch.setattr(lab_backend, "diagnose", lambda: Diagnosis(ok=False, checks=checks))
    capability = LabBackend().available(MACHINE)
    assert (capability.ok, capability.hint) == (False, fix)
    with pytest.raises(MachineLacksError, match=f"backend lab: {checks[-1].name}"):
        choose_backend("lab", MACHINE, part=RecordedPart(skip_accesses=5))


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"period": 1 << 41}, "period"),
        ({"part": RecordedPart(skip_accesses=5, take_seconds=1.0)}, "--skip in accesses"),
        ({"argv": ["/nowhere/app"]}, "no such program"),
        ({"options": {"memory": "100M"}}, "MiB"),
    ],
)
def test_what_cannot_be_recorded_is_told(request_: dict[str, object], problem: str, tmp_path: Path) -> None:
    usual: dict[str, object] = {"argv": ["true"], "workdir": tmp_path, "machine": MACHINE, "environment": {}}
    with pytest.raises(UsageError, match=problem):
        LabBackend().command(RecordRequest(**{**usual, **request_}))  # type: ignore[arg-type]


def test_a_dry_run_shows_the_machine(tmp_path: Path) -> None:
    command = LabBackend().command(RecordRequest(["true"], tmp_path, MACHINE, {}, period=50))
    assert any("record=50" in word and "llc_sizes=" in word for word in command)


def test_a_program_that_did_run_is_told_of_before_its_recording_can_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else `nlaunch --auto=record` would run it again."""

    class Booted:
        folder = tmp_path

        def run(self, *_: object) -> Outcome:
            return Outcome(7, False, 1.0, {}, b"", ((0, 0), (0, 0)))

    def fail(*_: object) -> None:
        raise UsageError("no sample")

    monkeypatch.setattr(lab_backend, "boot", lambda *_: Booted())
    monkeypatch.setattr(lab_backend, "guest_recording", fail)
    codes = list[int]()
    start = ProgramStart(codes.append)
    request = RecordRequest(["true"], tmp_path, MACHINE, {"PATH": "/bin:/usr/bin"}, start=start)
    request.identity_dir.mkdir()
    with pytest.raises(UsageError, match="no sample"):
        LabBackend().record(request, lambda _what, _share: None)
    assert codes == [7]
