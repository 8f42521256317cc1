"""Which QEMU emulates: one that has loaded our plugin, which says the version that this QEMU takes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from numaplan.common import MachineLacksError
from numaplan.profiler.backends.emulation.qemu import (
    PLUGIN,
    fetched,
    find_qemu,
    plugin_interface,
    refusal,
    reserving,
)
from tests.support.commands import needs

TAKES = "echo numaplan: loaded"
STATIC = "echo \"qemu: unknown option 'plugin'\" >&2; exit 1"
NEWER = 'case $*,$NUMAPLAN_QEMU_API in --version,*) echo "version 11.1" ;; *,7) echo numaplan: loaded ;; esac'
OTHER = 'echo "Could not load plugin: requires API version 2" >&2; exit 1'


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The one folder on PATH, and that of what `nprof setup` fetched."""
    system, cache = tmp_path / "bin", tmp_path / "cache" / "numaplan" / "qemu"
    monkeypatch.setenv("PATH", str(system))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    system.mkdir()
    (cache / "bin").mkdir(parents=True)
    return system, cache


def put(folder: Path, does: str) -> str:
    program = folder / "qemu-x86_64"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    return str(program)


def test_the_systems_is_taken_where_it_loads_our_plugin(folders: tuple[Path, Path]) -> None:
    system, cache = folders
    put(cache / "bin", TAKES)
    program = put(system, TAKES)
    assert find_qemu("x86_64") == [program]


@pytest.mark.parametrize("does", [STATIC, OTHER, "exit 0", None])
def test_else_the_fetched_one(folders: tuple[Path, Path], does: str | None) -> None:
    system, cache = folders
    if does:
        put(system, does)
    program = put(cache / "bin", TAKES)
    assert find_qemu("x86_64") == [program]


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (STATIC, "built without plugins"),
        (OTHER, "does not take our plugin .*API version 2"),
        (None, "not installed"),
    ],
)
def test_none_that_loads_it(folders: tuple[Path, Path], does: str | None, said: str) -> None:
    if does:
        put(folders[0], does)
    with pytest.raises(MachineLacksError, match=said) as caught:
        find_qemu("x86_64")
    assert "nprof setup" in caught.value.hint


def test_what_came_with_its_libraries_is_started_by_its_loader(folders: tuple[Path, Path]) -> None:
    cache = folders[1]
    program = put(cache / "bin", TAKES)
    (cache / "ld.so").symlink_to(sys.executable)
    assert fetched("x86_64") == [f"{cache}/ld.so", "--library-path", f"{cache}/lib", program]


def test_the_plugin_is_told_the_interface_that_it_cannot_see(folders: tuple[Path, Path]) -> None:
    program = put(folders[0], NEWER)
    words = find_qemu("x86_64")
    assert (words[-1], refusal(words)) == (program, "")
    assert refusal(words[-1:]), "not without being told"


@pytest.mark.parametrize(
    ("version", "told"), [(None, {}), ((11, 0), {}), ((11, 1), {"NUMAPLAN_QEMU_API": "7"})]
)
def test_which_versions_have_that_interface(version: tuple[int, int] | None, told: dict[str, str]) -> None:
    assert plugin_interface(version) == told


@pytest.mark.parametrize(("version", "less"), [(None, True), ((7, 2), True), ((8, 0), False)])
def test_which_versions_note_each_page(version: tuple[int, int] | None, less: bool) -> None:
    assert bool(reserving(version)) == less


@pytest.mark.parametrize("version", [1, 2])
def test_the_plugin_speaks_the_version_that_the_qemu_takes(tmp_path: Path, version: int) -> None:
    needs("cc")
    qemu = tmp_path / "qemu.so"
    offered = {1: "qemu_plugin_n_vcpus", 2: "qemu_plugin_scoreboard_new"}[version]
    source = f"void *{offered}(unsigned long bytes) {{ return (void *)bytes; }}"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(qemu)]
    subprocess.run(command, input=source.encode(), check=True)
    script = f"""import ctypes, os
ctypes.CDLL({str(qemu)!r}, mode=ctypes.RTLD_GLOBAL)
plugin = ctypes.CDLL({str(PLUGIN)!r}, mode=os.RTLD_LAZY)
print(ctypes.c_int.in_dll(plugin, "qemu_plugin_version").value)"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=os.environ)
    assert int(done.stdout) == version


FACTS = """#include "qemu_plugin.h"
#include <stdio.h>
#include <stdlib.h>
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info) { return info >> SIZE_BIT & 7; }
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info) { return info >> 17 & 1; }
int main(int count, char **facts) {
    if (!qemu_info_is_known()) return 1;
    for (int i = 1; i < count; i++) printf("%u ", qemu_access_rw((unsigned)atoi(facts[i])));
}
"""
LOADS, STORES, BOTH = 1, 2, 3


@pytest.mark.parametrize(("size_bit", "atomic_bit"), [(4, 12), (5, 14)])  # QEMU up to 10.1, from 10.2 on
def test_a_store_that_need_not_be_atomic_is_no_load(tmp_path: Path, size_bit: int, atomic_bit: int) -> None:
    """As with one thread. What says so has three bits; the last of them is that of loads since QEMU 10.2."""
    needs("cc")
    source, program = tmp_path / "facts.c", tmp_path / "facts"
    source.write_text(FACTS)
    folder = Path(__file__).parents[4] / "profiler/native/qemu"
    words = ["cc", f"-DSIZE_BIT={size_bit}", f"-I{folder}", str(source), str(folder / "version.c")]
    subprocess.run([*words, "-o", str(program)], check=True)
    eight_bytes, need_not = 3 << size_bit, 5 << atomic_bit
    told = [eight_bytes | need_not | rw << 16 for rw in (LOADS, STORES)] + [eight_bytes | BOTH << 16]
    done = subprocess.run([program, *map(str, told)], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["1", "2", "3"]
