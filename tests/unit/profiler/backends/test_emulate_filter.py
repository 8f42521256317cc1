"""Which samples of an emulated program are the runtime's rather than its own."""

import ctypes.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from numaplan.common import native_part
from numaplan.profiler.backends.emulation.filter import (
    SampleFilter,
    dropped_ranges,
    runtime_filter,
    thread_functions,
)
from numaplan.profiler.backends.emulation.spool import THREAD_RECORD, ProcessSpool
from numaplan.profiler.identity.records import Identity, ModuleRecord, Segment

NATIVE = native_part("profiler", "")


def module(path: str, start: int = 0x1000, *, pid: int = 5, executable: bool = False) -> ModuleRecord:
    segments = (Segment(start, 0x1000, 5), Segment(start + 0x1000, 0x1000, 6))
    return ModuleRecord("p0", pid, path, "", start, executable, segments, 0, -1)


@pytest.mark.parametrize(
    "name", ["ld-linux-x86-64.so.2", "ld-2.31.so", "libgomp.so.1.0.0", "libomp.so.5", "libpthread-2.31.so"]
)
def test_code_of_loaders_and_thread_runtimes_is_dropped_unless_kept(name: str) -> None:
    assert list(dropped_ranges(module(f"/lib/{name}"), True)) == [(0x1000, 0x2000)]
    assert list(dropped_ranges(module(f"/lib/{name}"), False)) == []


def test_our_own_library_is_always_dropped() -> None:
    for drop_runtime in (True, False):
        assert list(dropped_ranges(module(str(NATIVE / "preload.so")), drop_runtime))
    assert not list(dropped_ranges(module("/elsewhere/preload.so"), True))


@pytest.mark.parametrize("name", ["libm.so.6", "libcrypto.so.3", "libstdc++.so.6", "libldap.so.2", "app"])
def test_other_code_stays(name: str) -> None:
    assert list(dropped_ranges(module(f"/lib/{name}"), True)) == []


def test_a_program_that_is_called_like_a_runtime_stays() -> None:
    assert list(dropped_ranges(module("/usr/bin/ld.bfd", executable=True), True)) == []


def test_of_the_c_library_only_the_thread_functions_are_dropped() -> None:
    path = next((m for m in Path("/proc/self/maps").read_text().split() if "/libc.so.6" in m), None)
    if path is None or ctypes.util.find_library("c") is None:
        pytest.skip("this Python does not run on glibc")
    functions = thread_functions(path)
    assert len(functions) > 20
    assert sum(end - start for start, end in functions) < 200_000
    biased = set(dropped_ranges(module(path, 0x7F00_0000_0000), True))
    assert biased == {(start + 0x7F00_0000_0000, end + 0x7F00_0000_0000) for start, end in functions}


def test_damaged_libraries_have_no_thread_functions(tmp_path: Path) -> None:
    path = tmp_path / "libc.so.6"
    assert thread_functions(str(path)) == ()
    path.write_bytes(b"\x7fELF\2\1\1" + bytes(57))
    assert thread_functions(str(tmp_path / "." / "libc.so.6")) == ()


def image(pid: int, start_ns: int, origin: tuple[int, int] = (0, 0)) -> ProcessSpool:
    return ProcessSpool(Path("none"), pid, start_ns, 0, np.empty(0, THREAD_RECORD), origin=origin)


def kept(
    keep: SampleFilter, process: ProcessSpool, ip: list[int], addr: list[int] | None = None
) -> list[bool]:
    chosen = keep(process, np.array(ip, np.uint64), np.array(addr or [0] * len(ip), np.uint64))
    assert chosen is not None
    return chosen.tolist()


def test_filtering_is_by_process_and_address() -> None:
    modules = (module("/lib/libgomp.so.1"), module("/lib/libomp.so", 0x1800), module("/lib/libm.so", 0x9000))
    keep = runtime_filter(Identity(modules=modules), [image(5, 0), image(6, 1)], True)
    chosen = kept(keep, image(5, 0), [0xFFF, 0x1000, 0x1FFF, 0x2000, 0x27FF, 0x2800, 0x9000])
    assert chosen == [True, False, False, False, False, True, True]
    one = np.array([0x1000], np.uint64)
    assert keep(image(6, 1), one, one) is None


def test_what_anybody_does_to_our_librarys_memory_is_dropped() -> None:
    modules = (module(str(NATIVE / "preload.so")), module("/lib/libgomp.so.1", 0x8000))
    for drop_runtime in (True, False):
        keep = runtime_filter(Identity(modules=modules), [image(5, 0)], drop_runtime)
        assert kept(keep, image(5, 0), [1] * 5, [0xFFF, 0x1000, 0x2000, 0x3000, 0x9000]) == [
            *(True, False, False, True),
            True,  # a runtime's variables are touched by the program as well
        ]


def test_each_image_of_a_process_has_its_own_modules() -> None:
    first = replace(module("/lib/libgomp.so.1"), start_ns=15)
    second = replace(module("/lib/libgomp.so.1", 0x8000), start_ns=25)
    images = [image(5, 10), image(5, 20), image(5, 30)]
    keep = runtime_filter(Identity(modules=(first, second)), images, True)
    assert kept(keep, images[0], [0x1000, 0x8000]) == [False, True]
    assert kept(keep, images[1], [0x1000, 0x8000]) == [True, False]
    nothing = np.empty(0, np.uint64)
    assert keep(images[2], nothing, nothing) is None


def test_a_forked_process_without_a_log_has_its_parents_modules() -> None:
    images = [image(5, 10), image(6, 20, (5, 10)), image(7, 30, (6, 20))]
    keep = runtime_filter(Identity(modules=(module("/lib/libgomp.so.1"),)), images, True)
    for process in images:
        assert kept(keep, process, [0x1000, 0x8000]) == [False, True]
