"""Regions have the names that people wrote: in fixtures that say them, by several compilers."""

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from numaplan.profiler import Trace, prepare, read_identity
from numaplan.profiler.debug.region_names import SourceNames
from numaplan.profiler.trace.description import describe
from numaplan.profiler.trace.rows import SourceName
from tests.support.commands import needs, run, succeed
from tests.support.programs import PROGRAMS, compiled

pytestmark = pytest.mark.system

FIXTURES = PROGRAMS / "names"
LARGE = 64 << 10  # bytes; small static variables share regions
MARK = re.compile(r"region: (?P<name>\S+)(?: (?P<type>.+?))?\s*(?:\*/)?$")


def names_of(program: Path, tmp_path: Path) -> list[SourceName]:
    """What the large regions of a run are called."""
    os.utime(program)  # sources that are newer than the program are not believed
    subprocess.run([program], env=prepare(tmp_path, os.environ), check=True, timeout=300)
    identity = read_identity(tmp_path)
    with SourceNames(identity) as names:
        rows = names.name_regions(identity.regions).names
    found = [SourceName(*row) for row in rows]  # type: ignore[arg-type]
    return [row for row in found if identity.regions[row.region].bytes >= LARGE]


def truth(source: Path) -> dict[int, tuple[str, str]]:
    """Name and type by line."""
    found = {}
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if match := MARK.search(line):
            found[number] = (match["name"], match["type"] or "")
    return found


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def check(source: Path, program: Path, tmp_path: Path) -> None:
    """All lines are found, and no name is wrong; at least 95 % have one."""
    folder = tmp_path / "log"
    folder.mkdir()
    found = {
        row.line: (row.name, row.type)
        for row in names_of(program, folder)
        if row.path.endswith(f"/{source.name}")
    }
    expected = truth(source)
    lines = expected.keys() & found.keys()
    assert len(lines) >= 0.95 * len(expected), (expected, found)
    assert found.keys() <= expected.keys()
    named = {line: found[line] for line in lines if found[line][0]}
    assert named == {line: expected[line] for line in named}
    assert len(named) >= 0.95 * len(expected)


BOTH = pytest.mark.parametrize("optimised", ["-O0", "-O2"])


@BOTH
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", ["blocks.c", "wrapped.c"])
def test_names_in_c(name: str, compiler: str, optimised: str, tmp_path: Path) -> None:
    source = FIXTURES / name
    check(source, compiled(source, flags=(optimised, "-g"), compiler=compiler), tmp_path)


@BOTH
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_names_in_cpp(compiler: str, optimised: str, tmp_path: Path) -> None:
    source = FIXTURES / "containers.cc"
    check(source, compiled(source, flags=(optimised, "-g"), compiler=compiler), tmp_path)


@BOTH
def test_names_in_fortran(optimised: str, tmp_path: Path) -> None:
    source = FIXTURES / "arrays.f90"
    check(source, compiled(source, flags=(optimised, "-g"), compiler="gfortran"), tmp_path)


@BOTH
def test_names_in_rust(optimised: str, tmp_path: Path) -> None:
    source = FIXTURES / "vectors.rs"
    level = f"opt-level={optimised[-1]}"
    check(source, compiled(source, flags=("-g", "-C", level), compiler="rustc"), tmp_path)


@pytest.mark.parametrize("version", ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4"])
def test_earlier_versions_of_debug_information(version: str, tmp_path: Path) -> None:
    source = FIXTURES / "blocks.c"
    check(source, compiled(source, flags=("-O2", "-g", version), compiler="gcc"), tmp_path)


def test_debug_information_in_another_file(tmp_path: Path) -> None:
    source = FIXTURES / "blocks.c"
    program = tmp_path / "blocks"
    program.write_bytes(compiled(source, flags=("-O0", "-g"), compiler="gcc").read_bytes())
    program.chmod(0o755)
    apart = tmp_path / "blocks.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, apart], check=True)
    link = f"--add-gnu-debuglink={apart}"
    subprocess.run(["objcopy", "--strip-debug", link, program], check=True, cwd=tmp_path)
    check(source, program, tmp_path)


def test_a_stripped_program_is_called_as_before(tmp_path: Path) -> None:
    program = compiled(FIXTURES / "blocks.c", flags=("-O2", "-s"), compiler="gcc", name="stripped")
    assert not [row for row in names_of(program, tmp_path) if row.line]


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """(address of a server of debug information, what it is asked for)."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
def test_servers_are_asked_only_if_they_shall_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("debuginfod-find", "qemu-x86_64")
    program, trace = tmp_path / "sharing", tmp_path / "t.db"
    flags = ("-O1", "-g", "-pthread", "-Wl,--build-id=0xabcd0123")
    program.write_bytes(compiled(FIXTURES / "sharing.c", flags=flags, compiler="gcc").read_bytes())
    program.chmod(0o755)
    place = tmp_path / "buildid" / "abcd0123"
    place.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, place / "debuginfo"], check=True)
    subprocess.run(["objcopy", "--strip-debug", program], check=True)
    record = ("nprof", "record", "--backend", "emulate", "--period", "50", "-o", trace)
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "debuginfod"))
    with served(tmp_path) as (address, asked):
        monkeypatch.setenv("DEBUGINFOD_URLS", address)
        for option in ((), ("--debuginfod",)):
            succeed(*record, *option, "--", program)
            with Trace.open(trace) as opened:
                titles = [region["title"] for region in describe(opened)["regions"]]
            assert bool(asked) == bool(option)
            assert any(title.startswith("field (double[]") for title in titles) == bool(option)
    monkeypatch.setenv("DEBUGINFOD_URLS", " ")
    refused = run(*record, "--debuginfod", "--", program)
    assert refused.returncode == 2 and b"DEBUGINFOD_URLS names no server" in refused.stderr


@pytest.mark.parametrize("flags", [("-O0",), ("-O2", "-fno-asynchronous-unwind-tables"), ("-O1", "-pg")])
def test_allocations_from_odd_stacks(flags: tuple[str, ...], tmp_path: Path) -> None:
    program = compiled(FIXTURES / "odd_stacks.c", flags=("-g", "-pthread", *flags), compiler="gcc")
    subprocess.run([program], env=prepare(tmp_path, os.environ), check=True, timeout=300, cwd=tmp_path)
    regions = [region for region in read_identity(tmp_path).regions if region.bytes == 100000]
    assert len(regions) >= 8
    assert all(len(region.chain) <= 16 for region in regions)
    assert any(len(region.chain) == 16 for region in regions) or flags[0] == "-O2"


def marked(source: Path, word: str) -> int:
    """The line that says so."""
    return next(at for at, line in enumerate(source.read_text().splitlines(), 1) if f"line: {word}" in line)


@pytest.mark.slow
@BOTH
def test_what_a_library_does_counts_for_the_line_that_uses_it(optimised: str, tmp_path: Path) -> None:
    """Where that is inlined (-O2), and where it is called, as is what has no lines at all (memset)."""
    needs("qemu-x86_64")
    source = FIXTURES / "library_calls.cc"
    program = compiled(source, flags=(optimised, "-g", "-pthread"), compiler="g++")
    trace = tmp_path / "t.db"
    succeed("nprof", "record", "--backend", "emulate", "--period", "20", "-o", trace, "--", program)
    analysis = json.loads(succeed("nmap", "analyze", trace, "--lines", "--json"))
    found = analysis["lines"]
    total = sum(line["samples"] for line in found)
    own = {line["line"]: line["samples"] for line in found if line["path"] == str(source)}
    assert sum(own.values()) > 0.98 * total
    marks = [marked(source, word) for word in ("found", "counted", "made", "filled")]
    assert all(own[line] > 500 for line in marks)
    (shared,) = (line for line in analysis["false_sharing"] if line["samples"] > 1000)
    assert shared["code"] == [f"library_calls.cc:{marks[1]} in probe"], "a small block has no name of its own"
    assert f"(written at {shared['code'][0]})" in " ".join(analysis["summary"])


@pytest.mark.slow
def test_lines_and_fields_that_threads_share(tmp_path: Path) -> None:
    """Where they are read: analysis, plan and what a trace holds; of a copy, when the program is gone."""
    needs("qemu-x86_64")
    source = FIXTURES / "sharing.c"
    program = tmp_path / "sharing"
    program.write_bytes(compiled(source, flags=("-O1", "-g", "-pthread"), compiler="gcc").read_bytes())
    program.chmod(0o755)
    trace = tmp_path / "t.db"
    record = ("nprof", "record", "--backend", "emulate", "--machine", "2x2", "--period", "5", "-o", trace)
    succeed(*record, "--", program)
    program.unlink()
    found = json.loads(succeed("nmap", "analyze", trace, "--lines", "--json"))
    lines = {(line["path"], line["line"]): line for line in found["lines"]}
    taken = lines[str(source), marked(source, "transfers")]
    assert taken["function"] == "work"
    assert taken["transfers"] > 0
    assert any("tallies" in region["title"] for region in taken["regions"])
    foreign = lines[str(source), marked(source, "foreign")]
    assert foreign["foreign"] > 0.5 * foreign["samples"]
    title = "field (double[], 256 KiB) sharing.c:"
    assert any(region["title"].startswith(title) for region in foreign["regions"])
    shown = succeed("nmap", "analyze", trace, "--lines").decode().partition("Lines of code")[2]
    assert "field" in shown and "double[]" not in shown, "its type would fill four rows"
    assert found["false_sharing"][0]["fields"] == ["tallies[0].hits", "tallies[1].hits"]
    assert "the most at tallies[0].hits, tallies[1].hits of " in " ".join(found["summary"])
    with Trace.open(trace) as opened:
        assert any(region["title"].startswith(title) for region in describe(opened)["regions"])
    plan = tmp_path / "plan.json"
    succeed("nmap", "plan", trace, "--objective", "balanced", "-o", plan)
    listed = json.loads(plan.read_text())["memory"]
    sources = [region.get("source", "") for region in listed if region["region"]["kind"] == "heap"]
    title = "field (double[]) sharing.c:"
    assert any(name.startswith(title) and name.endswith(" in main") for name in sources)
