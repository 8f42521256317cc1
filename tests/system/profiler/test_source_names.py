"""Regions have the names that people wrote: in fixtures that say them, by several compilers."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from numaplan.profiler import prepare, read_identity
from numaplan.profiler.debug.region_names import SourceNames
from numaplan.profiler.trace.rows import SourceName
from tests.support.programs import PROGRAMS, compiled

pytestmark = pytest.mark.system

FIXTURES = PROGRAMS / "names"
MARK = re.compile(r"region: (?P<name>\S+)(?: (?P<type>.+?))?\s*(?:\*/)?$")


def names_of(program: Path, tmp_path: Path) -> list[SourceName]:
    """What the regions of a run are called."""
    os.utime(program)  # sources that are newer than the program are not believed
    subprocess.run([program], env=prepare(tmp_path, os.environ), check=True, timeout=300)
    identity = read_identity(tmp_path)
    with SourceNames(identity) as names:
        rows = names.name_regions(identity.regions).names
    return [SourceName(*row) for row in rows]  # type: ignore[arg-type]


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


@pytest.mark.parametrize("optimised", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_blocks_and_static_data_in_c(compiler: str, optimised: str, tmp_path: Path) -> None:
    source = FIXTURES / "blocks.c"
    check(source, compiled(source, flags=(optimised, "-g"), compiler=compiler), tmp_path)
