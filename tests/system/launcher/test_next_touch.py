"""Next-touch: marked memory used in every way that programs use memory, with its contents checked."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from numaplan.launcher import LIBRARY
from tests.support.programs import PROGRAMS, REPOSITORY, compiled, sanitized
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.system
SOURCE = PROGRAMS / "launcher/next_touch.c"
NATIVE = REPOSITORY / "launcher" / "native"
FLAGS = ("-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{NATIVE / 'include'}")
NAMES = ["threads", "chain", "chain-onstack", "signals", "deaths", "forks", "mappings", "calls"]


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled(SOURCE, flags=(*FLAGS, "-lpthread"), compiler="gcc")


def run(program: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *words],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize("name", NAMES)
def test_marked_memory_is_used_as_any_other(program: Path, name: str) -> None:
    done = run(program, name, LD_PRELOAD=str(LIBRARY))
    assert (done.returncode, done.stdout) == (0, f"{name}: 0 wrong\n"), done.stderr


@pytest.mark.slow
def test_a_million_pages_page_by_page(program: Path) -> None:
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    pages = 1_000_000 if int(facts["MemAvailable"].split()[0]) > 6 << 20 else 100_000
    done = run(program, "many", str(pages), LD_PRELOAD=str(LIBRARY))
    assert (done.returncode, done.stdout) == (0, "many: 0 wrong\n"), done.stderr


@pytest.mark.parametrize("name", ["busy", "huge"])
def test_no_page_is_left_behind(name: str) -> None:
    """By a kernel of the test's that is busy with a page, and that moves what it cannot split as a whole."""
    parts = [NATIVE / "next_touch" / f"{part}.c" for part in ("marks", "moving", "queue")]
    flags = (*FLAGS, f"-I{NATIVE / 'next_touch'}", "-ldl")
    program = compiled(PROGRAMS / "launcher/next_touch_kernel.c", *parts, flags=flags, compiler="gcc")
    assert run(program, name).stdout == "0 wrong, 0 stayed\n"


def test_without_nlaunch_a_program_is_told_so(program: Path) -> None:
    done = run(program, "absent")
    assert (done.returncode, done.stdout) == (0, "absent: 0 wrong\n"), done.stderr


@pytest.mark.parametrize("allocator", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0"])
@pytest.mark.parametrize("before", [True, False])
def test_other_allocators_before_and_after_ours(program: Path, allocator: str, before: bool) -> None:
    paths = [path for path in Path("/usr/lib").glob(f"*/{allocator}") if path.exists()]
    if not paths:
        pytest.skip(f"{allocator} is not installed")
    libraries = [str(paths[0]), str(LIBRARY)] if before else [str(LIBRARY), str(paths[0])]
    for name in ("threads", "forks", "calls"):
        done = run(program, name, LD_PRELOAD=":".join(libraries))
        assert (done.returncode, done.stdout) == (0, f"{name}: 0 wrong\n"), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sanitizer", "names"),
    [
        ("address,undefined", ["threads", "chain", "signals", "forks", "calls"]),
        ("thread", ["threads", "chain", "calls"]),
    ],
)
def test_it_is_sound(sanitizer: str, names: list[str]) -> None:
    parts = sorted((NATIVE / "next_touch").glob("*.c"))
    folders = [REPOSITORY / "profiler" / "native" / "preload", NATIVE / "next_touch"]
    includes = (f"-I{folder}" for folder in folders)
    program = sanitized(
        *(SOURCE, *parts, folders[0] / "live.c", folders[0] / "real.c"),
        sanitizer=sanitizer,
        flags=(*FLAGS, *includes, "-fno-sanitize=null", "-rdynamic", "-lpthread"),
    )
    for name in names:
        # The thread sanitizer cannot map its shadow under some address space layouts.
        command = [shutil.which("setarch") or "setarch", "-R", str(program), name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (done.returncode, done.stdout) == (0, f"{name}: 0 wrong\n"), done.stderr


PYTHON = """
import numpy as np
from numaplan.common import UsageError
from numaplan.launcher import How, next_touch, next_touch_counts
where = np.arange(1 << 20, dtype=np.int64)
print(next_touch(where, how=How.USER), int(where.sum()) == (1 << 20) * ((1 << 20) - 1) // 2)
print(next_touch_counts()["marked"] >= where.nbytes, next_touch_counts()["touches"] > 100)
print(next_touch(where, how=How.USER), next_touch(where, clear=True), where[5])
print(next_touch(where.ctypes.data, 8))
for wrong in (b"constant", 4096, where[::2], "text"):
    try:
        next_touch(wrong)
    except UsageError as error:
        print(error.what)
try:
    next_touch(4096, 4096, how=How.USER)
except UsageError as error:
    print(error.what)
"""


def test_from_python() -> None:
    done = run(Path(sys.executable), "-c", PYTHON, LD_PRELOAD=str(LIBRARY))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:4] == ["True True", "True True", "True True 5", "True"]
    assert len(lines) == 9 and lines[-1].endswith("cannot be marked for next-touch: Invalid argument")
    alone = run(
        Path(sys.executable), "-c", "from numaplan.launcher import *; print(next_touch(bytearray(9)))"
    )
    assert alone.stdout == "False\n", alone.stderr
