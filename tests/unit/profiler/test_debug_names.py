"""Debug information: what is kept of it, and that no file can do harm."""

import random
import subprocess
from pathlib import Path

import pytest

from numaplan.profiler import static_objects
from numaplan.profiler.debug import module_names
from numaplan.profiler.debug.answers import CallSite, Frame, Variable
from numaplan.profiler.debug.choosing import asked_for, is_wrapper
from numaplan.profiler.debug.dwarf.budget import Budget
from numaplan.profiler.debug.dwarf.sections import Sections
from numaplan.profiler.debug.element_types import element_type
from numaplan.profiler.debug.module_names import ModuleNames
from tests.support.programs import PROGRAMS, compiled

SOURCE = PROGRAMS / "names/wrapped.c"
MUTATIONS = 150


@pytest.fixture
def program() -> Path:
    return compiled(SOURCE, flags=("-O2", "-g"), compiler="gcc")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def code_of(program: Path) -> range:
    """Addresses of the program's own code."""
    shown = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout.split("\n")
    starts = [int(line.split()[0], 16) for line in shown if line.endswith((" main", " new_row", " xmalloc"))]
    return range(min(starts), max(starts) + 64, 3)


def answers(path: Path, code: range, budget: Budget | None = None) -> list[object]:
    names = ModuleNames(str(path), budget or Budget())
    found: list[object] = [names.site(address) for address in code]
    found += [names.line(address) for address in code]
    for piece in static_objects(str(path)):
        found += [names.static(piece.address), names.statics(piece.address, piece.bytes)]
    names.save()
    return found


def test_answers_are_kept(program: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = code_of(program)
    first = answers(program, code)
    assert any(isinstance(one, CallSite) and one.frames for one in first)
    (kept,) = [path for path in cache.rglob("*") if path.is_file()]
    with monkeypatch.context() as patched:
        patched.setattr(module_names, "DebugInfo", None)  # not read again
        assert answers(program, code) == first
    for damage in (b"", b"\0" * 100, kept.read_bytes()[:-5], kept.read_bytes()[:-1] + b"?"):
        kept.write_bytes(damage)
        assert answers(program, code) == first


def test_without_time_nothing_is_said_and_nothing_is_kept(program: Path) -> None:
    code = code_of(program)
    nothing = answers(program, code, Budget(-1.0))
    assert not any(one.frames for one in nothing if isinstance(one, CallSite))
    assert any(one.frames for one in answers(program, code) if isinstance(one, CallSite))


def test_damaged_debug_information_does_no_harm(program: Path, tmp_path: Path) -> None:
    code, whole, chance = code_of(program), program.read_bytes(), random.Random(7)
    sections = Sections(program)
    spans = [
        (offset, length)
        for name, (_, offset, length, *_) in sections._table.items()
        if name.startswith(".debug") and length
    ] + [(0, 64), (len(whole) - 64 * 38, 64 * 38)]
    damaged = tmp_path / "damaged"
    for number in range(MUTATIONS):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 3, 30))):
            offset, length = chance.choice(spans)
            value = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            data[offset + chance.randrange(length)] = value
        if number % 10 == 0:
            del data[chance.randrange(len(data)) :]
        damaged.write_bytes(data)
        answers(damaged, code[:: max(1, len(code) // 12)], Budget(5.0))


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(58), b"MZ" * 100])
def test_other_files_have_no_names(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    for path in (tmp_path / "file", tmp_path / "missing", tmp_path, Path("/dev/null")):
        names = ModuleNames(str(path), Budget())
        assert names.site(4096) == CallSite()
        assert names.static(4096) is None
        assert names.line(4096) == ("", "", 0)
        names.save()


def site(function: str, *, variable: str = "", path: str = "/home/me/app.c", outer: str = "") -> CallSite:
    frame = Frame(function, outer, path, 7, False)
    return CallSite((frame,), (Variable(variable) if variable else None,))


@pytest.mark.parametrize(
    ("chain", "function", "variable"),
    [
        ([("app", site("main", variable="grid"))], "main", "grid"),
        ([("app", site("xmalloc", variable="p")), ("app", site("main", variable="grid"))], "main", "grid"),
        ([("libstdc++.so.6", CallSite()), ("app", site("main", variable="grid"))], "main", "grid"),
        # What a library gives back may be something else than the block that it made.
        ([("libfftw3.so.3", CallSite()), ("app", site("main", variable="plan"))], "main", ""),
        (
            [("app", site("push", outer="std")), ("app", site("Grid::Grid", variable="cells"))],
            "Grid::Grid",
            "cells",
        ),
        ([("app", site("xmalloc", variable="p"))], "xmalloc", "p"),
    ],
)
def test_who_asked_for_a_block(chain: list[tuple[str, CallSite]], function: str, variable: str) -> None:
    found = asked_for(chain)
    assert found is not None
    assert (found[0].function, found[1].name if found[1] else "") == (function, variable)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("__new_allocator<sim::Cell>::allocate", "sim::Cell[]"),
        ("allocator<std::pair<int, double> >::allocate", ""),
        ("allocator<double>::allocate", "double[]"),
        ("make_unique<int []>", "int[]"),
        ("make_unique<int[]>", "int[]"),
        ("make_unique<sim::World, int>", ""),
        ("RawVec<app::Body, alloc::alloc::Global>::with_capacity_in<app::Body>", "[app::Body]"),
        ("Vec<(u8, u64), alloc::alloc::Global>::with_capacity<(u8, u64)>", "[(u8, u64)]"),
        ("RawVecInner<alloc::alloc::Global>::with_capacity_in<alloc::alloc::Global>", ""),
        ("__new_allocator<std::__detail::_Hash_node_base*>::allocate", ""),
        (f"allocator<{'x' * 99}>::allocate", ""),
    ],
)
def test_what_a_container_holds(function: str, expected: str) -> None:
    assert element_type(["operator new", function, "allocator<char>::deallocate"]) == expected


WRAPPERS = (
    *("xmalloc", "safe_malloc", "my_calloc", "operator new[]", "mem_alloc", "zmalloc", "kmalloc"),
    *("xmalloc_aligned", "Pool::allocate", "aligned_alloc", "hwloc_alloc"),
)
OTHERS = ("main", "allocate_grid", "new_row", "Grid::Grid", "init", "alloc_particles")


@pytest.mark.parametrize("function", [*WRAPPERS, *OTHERS])
def test_functions_that_only_pass_blocks_on(function: str) -> None:
    assert is_wrapper(Frame(function, "", "/home/me/app.c", 7)) == (function in WRAPPERS)
