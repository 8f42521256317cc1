"""The commands' own script: Ctrl-C is quiet from the first moment on, wherever the script lies."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import BIN

COMMANDS = ("nlab", "nlaunch", "nmap", "nprof", "numaplan")
pytestmark = pytest.mark.system


def start(script: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [script, "--version"],
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


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_while_the_script_runs(tmp_path: Path, name: str) -> None:
    finds = tmp_path / "readlink"  # the first that the script calls
    finds.write_text('#!/bin/sh\nkill -INT $PPID\nexec /bin/readlink "$@"\n')
    finds.chmod(0o755)
    done = start(BIN / name, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_it_is_found_by_links_and_under_odd_names(tmp_path: Path) -> None:
    link = tmp_path / "profiler"
    link.symlink_to(BIN / "nprof")
    odd = tmp_path / "a=b 'c'"
    odd.mkdir()
    for name in ("nmap", "numaplan-start"):
        shutil.copy(BIN / name, odd / name)
    for script in (link, odd / "nmap"):
        done = start(script)
        assert (done.returncode, done.stderr) == (0, b""), done
        assert done.stdout.startswith(b"numaplan ")


def test_an_env_that_cannot_block_signals(tmp_path: Path) -> None:
    env = tmp_path / "env"
    env.write_text("#!/bin/sh\necho no such option >&2\nexit 125\n")
    env.chmod(0o755)
    done = start(BIN / "nprof", PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_child_of_the_script_is_killed(tmp_path: Path) -> None:
    finds = tmp_path / "readlink"
    finds.write_text("#!/bin/sh\nkill -KILL $$\n")
    finds.chmod(0o755)
    done = start(BIN / "nprof", PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (128 + signal.SIGKILL, b"")


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
