"""Programs that an emulated one starts and that cannot be emulated run as they are, and it is told."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from numaplan.profiler import Trace
from tests.support.commands import run
from tests.support.emulating import MARKS
from tests.support.programs import PROGRAMS, compiled

pytestmark = MARKS

UNSEEN = "became a program that was not emulated"


def recorded(folder: Path, *command: object, options: Sequence[str] = ()) -> tuple[int, str]:
    """How a program ended, and the warnings in its trace."""
    words = ("nprof", "record", "--backend", "emulate", "--period", "50", "-o", folder / "t.db")
    result = run(*words, *options, "--", *command)
    assert (folder / "t.db").exists(), result.stderr.decode()
    with Trace.open(folder / "t.db") as trace:
        return result.returncode, trace.meta.get("warnings", "")


@pytest.mark.parametrize("other", [False, True], ids=["no emulator", "another emulator"])
@pytest.mark.parametrize("who", ["self", "child"])
def test_under_another_root(tmp_path: Path, who: str, other: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may change the root")
    program = compiled(PROGRAMS / "recording/other_root.c")
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    # It ends with 1 where it has no child to run.
    shutil.copy(compiled(PROGRAMS / "recording/static_parent.c", flags=("-static",)), root / "inside")
    if other:
        shutil.copy(root / "inside", root / "usr/bin/qemu-x86_64")
        shutil.copy(root / "inside", root / "usr/bin/qemu-aarch64")
    code, warnings = recorded(tmp_path, program, root, "/inside", who)
    assert code == 1
    assert f"{'p0' if who == 'self' else 'p0.1'} (other_root) {UNSEEN}" in warnings
    assert "signal" not in warnings


@pytest.mark.parametrize("options", [(), ("--skip", "400K")], ids=["whole", "from then on"])
def test_what_goes_on_under_another_root(tmp_path: Path, options: Sequence[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may change the root")
    program, additions, period = compiled(PROGRAMS / "recording/other_root.c"), 500_000, 50
    (tmp_path / "root").mkdir()
    code, warnings = recorded(tmp_path, program, tmp_path / "root", additions, "stays", options=options)
    assert code == 0 and not warnings
    with Trace.open(tmp_path / "t.db") as trace:
        of_each = dict(trace.rows("SELECT thread, count(*) FROM samples GROUP BY thread"))
    assert len(of_each) == 2 and min(of_each.values()) > 1.5 * additions / period


def test_what_closed_the_folder_of_its_recording_under_another_root(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may change the root")
    (tmp_path / "root").mkdir()
    words = ("nprof", "record", "--backend", "emulate", "--period", "50", "-o", tmp_path / "t.db")
    program = compiled(PROGRAMS / "recording/other_root.c")
    result = run(*words, "--", program, tmp_path / "root", 500_000, "closes")
    assert result.returncode == 2 and not (tmp_path / "t.db").exists()
    assert b"another root" in result.stderr and b"--backend lab" in result.stderr


def test_another_user_s_program(tmp_path: Path) -> None:
    """Its rights are gone before it begins."""
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    code, warnings = recorded(tmp_path, "setpriv", "--reuid", "65534", "--clear-groups", "true")
    assert code == 0
    assert f"p0 (setpriv) {UNSEEN}" in warnings and "--backend lab" in warnings


BECOMES = """
import os, sys, threading
work = lambda: sum(x * x for x in range(3 * 10**4))
def become(user):
    os.setresuid(-1, user, -1) if sys.argv[1] == "effective" else os.setuid(user)
    threads = [threading.Thread(target=work) for _ in range(2)]
    [thread.start() for thread in threads]
    work()
    [thread.join() for thread in threads]
users = [int(word) for word in sys.argv[2:]]
if os.fork() == 0:
    become(users[0])
    if os.fork() == 0:
        work()
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
for user in users[1:]:
    become(user)
work()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["real", "effective"])
def test_a_process_that_becomes_another_user(tmp_path: Path, how: str) -> None:
    """As servers do that root starts: their threads and children are recorded on."""
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    words = ("nprof", "record", "--backend", "emulate", "--period", "200", "-o", tmp_path / "u.db")
    result = run(*words, "--", sys.executable, "-ISc", BECOMES, how, "65534")
    assert result.returncode == 0, result.stderr
    with Trace.open(tmp_path / "u.db") as trace:
        found = {(row.process, row.path) for row in trace.thread_rows}
        samples = dict(trace.rows("SELECT thread, count(*) FROM samples GROUP BY thread"))
        seen = {(row.process, row.path) for row in trace.thread_rows if samples.get(row.thread, 0) > 200}
    child = {("p0.1", path) for path in ("0", "0.1", "0.2")}
    assert found >= {("p0", "0"), ("p0.1.1", "0"), *child} and seen >= {("p0", "0"), ("p0.1.1", "0"), *child}
    assert (tmp_path / "u.db").stat().st_uid == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["u.db"]


@pytest.mark.slow
def test_processes_that_become_several_users(tmp_path: Path) -> None:
    """The recording can be given to one of them."""
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    words = ("nprof", "record", "--backend", "emulate", "--period", "200", "-o", tmp_path / "u.db")
    result = run(*words, "--", sys.executable, "-ISc", BECOMES, "real", "65534", "65533")
    assert result.returncode == 2
    assert b"gave up the rights to write its recording" in result.stderr
    assert b"--backend lab" in result.stderr
    assert not (tmp_path / "u.db").exists()


def test_a_child_of_a_static_program(tmp_path: Path) -> None:
    parent = compiled(PROGRAMS / "recording/static_parent.c", flags=("-static",))
    code, warnings = recorded(tmp_path, parent, shutil.which("false"))
    assert code == 1
    assert UNSEEN in warnings and "signal" not in warnings


@pytest.mark.slow
def test_a_program_that_is_emulated_is_no_other(tmp_path: Path) -> None:
    """An exec that fails, one that comes to be, and the shell of system()."""
    code, warnings = recorded(tmp_path, "sh", "-c", "/nowhere/program; exec false")
    assert (code, warnings) == (1, "")
    code, warnings = recorded(
        tmp_path, sys.executable, "-c", "import os; os.system('/nowhere/program; true')"
    )
    assert (code, warnings) == (0, "")
