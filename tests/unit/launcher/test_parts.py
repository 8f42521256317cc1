"""Which part of a plan a child process has: by its number, its program, and who has which part already."""

import os
import subprocess
from pathlib import Path

import pytest

from numaplan.launcher.enforce.plan_table import encode, name_hash
from numaplan.profiler import prepare
from tests.support.outside import plan_of_programs
from tests.support.programs import PROGRAMS, REPOSITORY, STRICT, compiled
from tests.support.waiting import PATIENCE_S

PRELOAD, PLAN_TABLE = (
    REPOSITORY / folder for folder in ("profiler/native/preload", "launcher/native/plan_table")
)
WORKERS = {f"p0_{number}": "gzip" for number in (2, 3, 4)}
SHELLS = {**{f"p0_{number}": "sh" for number in (2, 3, 4)}, **{f"p0_{n}_1": "gzip" for n in (2, 3, 4)}}
TWO_EACH = {"p0_2": "sh", "p0_2_1": "gzip", "p0_2_2": "gzip", "p0_5": "sh", "p0_5_1": "gzip"}


def part_of(folder: Path, programs: dict[str, str], process: str, program: str, *taken: str) -> str:
    source = PROGRAMS / "launcher/part.c"
    flags = (*STRICT, "-D_GNU_SOURCE", f"-I{PLAN_TABLE}")
    asks = compiled(source, PLAN_TABLE / "plan_table.c", flags=flags)
    table = folder / "plan.bin"
    plan = plan_of_programs(**programs)
    table.write_bytes(encode(plan, {}, lambda _module, _symbol: None).data)
    parent, _, number = process.rpartition(".")
    question = " ".join((process, parent, program, number, *taken, "."))
    done = subprocess.run([asks, table], input=question, capture_output=True, text=True, check=True)
    names = {name_hash(thread.process): thread.process for thread in plan.threads}
    return names.get(int(done.stdout), process)


@pytest.mark.parametrize(
    ("process", "taken", "part"),
    [
        ("p0.3", (), "p0.3"),
        ("p0.3", ("p0.2", "p0.4"), "p0.3"),
        ("p0.3", ("p0.3",), "p0.2"),
        ("p0.3", ("p0.2", "p0.3"), "p0.4"),
        ("p0.3", ("p0.2", "p0.3", "p0.4"), "p0.3"),
        ("p0.1", ("p0.2", "p0.3"), "p0.4"),
        ("p0.9", (), "p0.4"),
        ("p0.9", ("p0.4",), "p0.3"),
        ("p0.9", ("p0.4", "p0.3"), "p0.2"),
        ("p0.9", ("p0.4", "p0.3", "p0.2"), "p0.4"),
    ],
)
def test_the_nearest_part_that_nobody_has_or_else_the_nearest(
    tmp_path: Path, process: str, taken: tuple[str, ...], part: str
) -> None:
    assert part_of(tmp_path, {"p0_1": "perl", **WORKERS}, process, "gzip", *taken) == part


@pytest.mark.parametrize(
    ("process", "taken", "part"),
    [
        ("p0.3", (), "p0.3.1"),
        ("p0.1", (), "p0.2.1"),
        ("p0.1", ("p0.2.1",), "p0.3.1"),
        ("p0.5", ("p0.4.1",), "p0.3.1"),
        ("p0.5", ("p0.4.1", "p0.3.1", "p0.2.1"), "p0.4.1"),
        ("p0.3.1", (), "p0.3.1"),
        ("p0.3.2", (), "p0.3.1"),
        ("p1.3", (), "p1.3"),
    ],
)
def test_a_part_of_a_child_s_child_where_no_child_ran_this(
    tmp_path: Path, process: str, taken: tuple[str, ...], part: str
) -> None:
    assert part_of(tmp_path, SHELLS, process, "gzip", *taken) == part


@pytest.mark.parametrize(
    ("process", "taken", "part"),
    [
        ("p0.3", (), "p0.2.1"),
        ("p0.3", ("p0.2.1",), "p0.2.2"),
        ("p0.3", ("p0.2.1", "p0.2.2"), "p0.5.1"),
        ("p0.4", (), "p0.5.1"),
    ],
)
def test_it_is_the_one_whose_parent_is_nearest(
    tmp_path: Path, process: str, taken: tuple[str, ...], part: str
) -> None:
    assert part_of(tmp_path, TWO_EACH, process, "gzip", *taken) == part
    assert part_of(tmp_path, {**TWO_EACH, "p0_9": "gzip"}, process, "gzip", *taken) == "p0.9"  # a child


@pytest.mark.parametrize(
    ("program", "taken", "part"),
    [("gzip", (), "p0.3"), ("gzip", ("p0.3",), "p0.3.1"), ("perl", (), "p0.3.1")],
)
def test_the_parent_s_part_where_only_that_ran_this(
    tmp_path: Path, program: str, taken: tuple[str, ...], part: str
) -> None:
    assert part_of(tmp_path, WORKERS, "p0.3.1", program, *taken) == part
    assert part_of(tmp_path, {**WORKERS, "p0_3_2": program}, "p0.3.1", program, *taken) == "p0.3.2"


def choices(folder: Path, *arguments: str) -> str:
    """What tests/programs/launcher/choices.c says."""
    sources = (PROGRAMS / "launcher/choices.c", PRELOAD / "processes.c", PRELOAD / "status.c")
    program = compiled(*sources, flags=(*STRICT, "-D_GNU_SOURCE", f"-I{PRELOAD}"))
    environment = {name: value for name, value in prepare(folder, os.environ).items() if name != "LD_PRELOAD"}
    command = [program, *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    return done.stdout


def test_who_chose_is_seen_while_it_lives(tmp_path: Path) -> None:
    """And nobody chooses by what was before another chose."""
    assert choices(tmp_path).splitlines() == [
        "may choose after another did: no",
        "may choose again: yes",
        "played: yes",
        "by another program: no",
        "played by a dead one or by itself: no",
        "by one that has ended: no",
        "by one for now: yes",
        "and surely: no",
        "by one that was killed in between: no",
        "which holds nobody up: yes",
    ]


def test_of_those_that_choose_at_once_each_has_a_part_of_its_own(tmp_path: Path) -> None:
    assert choices(tmp_path, "32") == "1" * 32 + "\n"
