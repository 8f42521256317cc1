"""What starts the commands: Ctrl-C is quiet from the first moment on, wherever they lie."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import BIN, needs

COMMANDS = ("nlab", "nlaunch", "nmap", "nprof", "numaplan")
pytestmark = pytest.mark.system


def start(program: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [program, "--version"],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_while_python_starts(tmp_path: Path, name: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, pathlib, signal\n"
        f"pathlib.Path({str(tmp_path)!r}, 'came').touch()\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = start(BIN / name, PYTHONPATH=str(tmp_path))
    assert (tmp_path / "came").exists()
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def told_at_both_ends(folder: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    """nprof with these words, told by SIGUSR2 while Python starts and when all is done."""
    (folder / "sitecustomize.py").write_text(
        "import atexit, os, signal, sys\n"
        "tell = lambda: os.kill(os.getpid(), signal.SIGUSR2)\n"
        "atexit.register(tell)\n"
        "tell()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [BIN / "nprof", *words], env=environment, cwd=folder, capture_output=True, check=False, timeout=120
    )


def test_what_starts_a_recording_ends_nothing_while_python_starts_or_ends(tmp_path: Path) -> None:
    done = told_at_both_ends(tmp_path, "record", "--on-signal", "--skip", "1s", "--", "true")
    assert done.returncode == 2, done
    early, error = done.stderr.splitlines()
    assert b"came early" in early and b"--skip with --on-signal" in error


@pytest.mark.parametrize("words", [("info", "--on-signal"), ("record", "--", "true", "--on-signal")])
def test_it_ends_what_it_does_not_start(words: tuple[str, ...], tmp_path: Path) -> None:
    done = told_at_both_ends(tmp_path, *words)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGUSR2, b"", b"")


def test_it_is_found_by_links_and_under_odd_names(tmp_path: Path) -> None:
    link = tmp_path / "profiler"
    link.symlink_to(BIN / "nprof")
    odd = tmp_path / "a=b 'c'"
    odd.mkdir()
    for name in ("nmap", "numaplan-start"):
        shutil.copy(BIN / name, odd / name)
    for program in (link, odd / "nmap"):
        done = start(program)
        assert (done.returncode, done.stderr) == (0, b""), done
        assert done.stdout.startswith(b"numaplan ")


def test_without_what_it_starts_it_says_so(tmp_path: Path) -> None:
    shutil.copy(BIN / "nmap", tmp_path)
    done = start(tmp_path / "nmap")
    lacks = f"nmap: error: {tmp_path}/numaplan-start: No such file or directory — install numaplan again\n"
    assert (done.returncode, done.stderr.decode()) == (3, lacks)


def test_ignored_interrupts_stay_ignored(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", BIN / "nprof", "--version"]
    done = subprocess.run(
        ignoring,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_it_goes_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, pathlib, sys\n"
        "atexit.register(lambda: print(pathlib.Path('/proc/self/comm').read_text(), sys.argv))\n"
    )
    done = start(BIN / "nprof", PYTHONPATH=str(tmp_path))
    assert done.stdout.decode().splitlines()[1:] == ["nprof", f" {[str(BIN / 'nprof'), '--version']}"]


def test_the_starter_alone_says_what_it_is_for() -> None:
    done = start(BIN / "numaplan-start")
    assert done.returncode == 2
    assert done.stderr == (
        b"numaplan-start: error: this starts one of nprof, nmap, nlaunch, nlab, numaplan\n"
    )


def locale_variables(said: bytes) -> list[bytes]:
    return [line for line in said.splitlines() if line.startswith((b"LANG", b"LC_"))]


def told_locale(folder: Path, given: dict[str, str], *words: str) -> tuple[list[bytes], list[bytes]]:
    """What a program is told of the locale by one of our commands that starts it, and by nobody else."""
    bare = {key: value for key, value in os.environ.items() if key != "LANG" and not key.startswith("LC_")}
    environment = {**bare, **given, "XDG_DATA_HOME": str(folder)}
    program = ["sh", "-c", "env >&2"]
    alone = subprocess.run(program, env=environment, capture_output=True, check=True)
    command = [BIN / words[0], *words[1:], "--", *program]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return locale_variables(done.stderr), locale_variables(alone.stderr)


@pytest.mark.parametrize("given", [{}, {"LC_CTYPE": ""}, {"LC_CTYPE": "C"}, {"LC_CTYPE": "no_SUCH.UTF-8"}])
def test_programs_get_the_locale_that_the_command_got(tmp_path: Path, given: dict[str, str]) -> None:
    """Python gives itself another one where that has no letters but ASCII's."""
    got, alone = told_locale(tmp_path, given, "nlaunch", "--auto")
    assert got == alone


@pytest.mark.slow
def test_recorded_programs_get_the_locale_that_the_command_got(tmp_path: Path) -> None:
    needs("qemu-x86_64")
    got, alone = told_locale(tmp_path, {}, "nprof", "record")
    assert got == alone == []
