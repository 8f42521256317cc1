"""AVX2, of which QEMU before 9.1 gets some gathers wrong: such a QEMU has none unless it is asked for."""

from pathlib import Path

import pytest

from numaplan.profiler import Trace
from numaplan.profiler.backends.emulation.qemu import find_qemu, lacks_avx2, qemu_version, x86_cpu
from tests.support.commands import run
from tests.support.emulating import MARKS
from tests.support.programs import PROGRAMS, compiled

pytestmark = MARKS

RIGHT = "17 12 15 11\n"


def recorded(folder: Path, *words: object) -> tuple[int, str, str]:
    """How the program ended, what it wrote, and the warnings in its trace."""
    program = compiled(PROGRAMS / "recording/gathers.c")
    options = [word for word in words if str(word).startswith("avx2=")]
    setting = [word for option in options for word in ("--set", option)]
    rest = [word for word in words if word not in options]
    trace = folder / "t.db"
    result = run(
        "nprof",
        "record",
        "--backend",
        "emulate",
        "--period",
        "1",
        "-o",
        trace,
        *setting,
        "--",
        program,
        *rest,
    )
    with Trace.open(trace) as opened:
        return result.returncode, result.stdout.decode(), opened.meta.get("warnings", "")


def test_a_program_that_asks_computes_right(tmp_path: Path) -> None:
    assert recorded(tmp_path) == (0, RIGHT, "")


@pytest.mark.slow
def test_a_program_built_for_avx2_is_told_the_option(tmp_path: Path) -> None:
    code, _, warnings = recorded(tmp_path, "avx2=off", "always")
    assert code == 128 + 4
    assert "give --set avx2=on" in warnings
    code, said, warnings = recorded(tmp_path, "avx2=on", "always")
    assert (code, warnings) == (0, "")
    version = qemu_version(find_qemu("x86_64"))
    assert version is not None
    if version >= (9, 1):
        assert said == RIGHT


@pytest.mark.parametrize(
    ("version", "lacks"), [(None, True), ((7, 2), True), ((9, 0), True), ((9, 1), False), ((10, 0), False)]
)
def test_the_versions_that_have_it(version: tuple[int, int] | None, lacks: bool) -> None:
    assert lacks_avx2(["-cpu", x86_cpu(version)]) == lacks
    assert lacks_avx2(["-cpu", x86_cpu(version, "off")])
    assert not lacks_avx2(["-cpu", x86_cpu(version, "on")])
