"""Programs that start others, load libraries, map much or would have privilege, emulated."""

import os
import shutil
from pathlib import Path
from signal import SIGSEGV

import numpy as np
import pytest

from numaplan.profiler.identity.records import Identity
from tests.support.emulating import MARKS, Recorder, Seen
from tests.support.programs import OPTIMISED, PROGRAMS, compiled

pytestmark = MARKS
SOURCE = PROGRAMS / "recording/emulate_starts.c"


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled(SOURCE, flags=(*OPTIMISED, "-D_GNU_SOURCE", "-ldl"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a name of its own, as libraries have."""
    built = compiled(SOURCE, flags=(*OPTIMISED, "-D_GNU_SOURCE", "-DLIBRARY", "-shared", "-fPIC"))
    return Path(shutil.copy(built, tmp_path_factory.mktemp("starts") / "work.so"))


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Recorder:
    return Recorder(program, tmp_path)


def identity_of(seen: Seen) -> Identity:
    assert seen.recording.exit_code == 0 and seen.recording.identity is not None
    return seen.recording.identity


def stores_into(seen: Seen, kind: str, name: str, size: int) -> list[int]:
    """How many stores each such region took."""
    identity = identity_of(seen)
    found = []
    for region in identity.regions:
        if region.kind == kind and region.name.startswith(name) and region.bytes == size:
            inside = seen.samples["addr"] - np.uint64(region.start_addr) < np.uint64(size)
            own = inside & (seen.samples["pid"] == region.pid) & (seen.samples["time_ns"] >= region.start_ns)
            found.append(int((own & seen.samples["is_write"]).sum()))
    return found


@pytest.mark.parametrize("way", ["spawn", "vfork", "bare"])
def test_what_a_program_starts_is_recorded(run: Recorder, way: str) -> None:
    seen = run(way, identity=True)
    assert stores_into(seen, "heap", "emulate_starts+", 240_000) == [30_000]
    processes = [process.process for process in identity_of(seen).processes]
    assert processes == (["p0"] if way == "bare" else ["p0", "p0.1"])
    assert all(0 <= p.start_ns < p.end_ns for p in identity_of(seen).processes)


def test_what_is_waited_for_is_over_before_what_comes_next(program: Path, tmp_path: Path) -> None:
    """Each process counts its own accesses; a shell that waits goes on after those of its child."""
    both = '"$0" bare child; "$0" bare child; "$0" bare child & "$0" bare child; wait'
    seen = Recorder(Path("/bin/sh"), tmp_path)("-c", both, program, identity=True)
    shell, first, second, third, fourth = identity_of(seen).processes
    assert shell.start_ns <= first.start_ns < first.end_ns <= second.start_ns
    assert second.end_ns <= min(third.start_ns, fourth.start_ns)
    assert max(third.start_ns, fourth.start_ns) < min(third.end_ns, fourth.end_ns)
    assert max(third.end_ns, fourth.end_ns) <= shell.end_ns


def test_a_child_that_a_signal_ended_is_told(run: Recorder) -> None:
    """Some programs' processes die under QEMU alone, and only their parents say so, if at all."""
    seen = run("killed", identity=True)
    assert [process.process for process in identity_of(seen).processes] == ["p0", "p0.1", "p0.2"]
    told = seen.recording.notes["warnings"]
    assert told.startswith("a signal ended p0.1 (emulate_starts): ") and "p0.2" not in told


def test_a_program_that_a_signal_ended_is_told(tmp_path: Path) -> None:
    """As Erlang's and Mono's, which QEMU 7.2 alone ends, too."""
    seen = Recorder(Path("/bin/sh"), tmp_path)("-c", "kill -SEGV $$", identity=True)
    assert seen.recording.exit_code == 128 + SIGSEGV
    told = seen.recording.notes["warnings"]
    assert told.startswith("a signal ended p0 (dash): ") and "--backend lab" in told


def test_a_child_that_goes_on_is_told(run: Recorder, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    seen = run("leave", pipe, identity=True)
    assert "p0.1 (emulate_starts) went on when the program had ended" in seen.recording.notes["warnings"]
    os.close(os.open(pipe, os.O_WRONLY))  # which waits until it is there


def test_a_library_that_the_program_preloads_is_loaded_with_ours(
    run: Recorder, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANTED", str(library))
    seen = run("preload", identity=True)
    assert stores_into(seen, "heap", "emulate_starts+", 240_000) == [30_000]


def test_a_library_that_is_loaded_at_run_time_does_the_work(run: Recorder, library: Path) -> None:
    seen = run("library", library, identity=True)
    assert stores_into(seen, "heap", "work.so+", 160_000) == [20_000, 20_000]


def test_maps_that_are_hardly_touched(run: Recorder) -> None:
    seen = run("big", identity=True)
    assert stores_into(seen, "mmap", "emulate_starts+", 1 << 34) == [1000]
    assert stores_into(seen, "mmap", "emulate_starts+", 1 << 30) == [1000]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a program of another user's")
def test_the_set_user_id_bit_has_no_effect(run: Recorder, tmp_path: Path) -> None:
    owned = Path(shutil.copy("/usr/bin/id", tmp_path / "id"))
    os.chown(owned, 65534, -1)
    owned.chmod(0o4755)
    script = tmp_path / "is-root"
    script.write_text(f'#!/bin/sh\ntest "$({owned} -u)" = 0\n')
    script.chmod(0o755)
    assert run(executable=script, identity=True).recording.exit_code == 0
