"""Signals that ask a command to end: it is tidied up, or finishes first what a program left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from numaplan.common import UsageError, interruptible, is_asked_to_end, run_program, temporary_folder
from numaplan.common.command_line.frame import run_framed

ASKING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]


@pytest.fixture(autouse=True)
def _hang_up_ends() -> Iterator[None]:
    """Also where the tests are started by nohup, which has SIGHUP ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_signals_interrupt_inside_and_are_told() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interruptible(signal.SIGTERM, signal.SIGHUP) as received:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) == before


def ask(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", ASKING)
def test_a_command_tidies_up_and_tells_which_signal_it_was(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before, tidied = [signal.getsignal(number) for number in ASKING], []

    def call() -> None:
        try:
            ask(number)
        finally:
            tidied.append(True)

    assert run_framed(call, "nprof") == 128 + number
    assert tidied == [True]
    assert capsys.readouterr().err == "nprof: error: interrupted\n"
    assert [signal.getsignal(number) for number in ASKING] == before


@pytest.mark.parametrize("number", ASKING)
def test_what_a_program_left_is_finished_first(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    def call() -> int:
        assert run_program(["true"], os.environ) == 0
        ask(number)
        assert is_asked_to_end()
        with pytest.raises(KeyboardInterrupt):  # and nothing new is begun
            run_program(["touch", "/dev/full/never"], os.environ)
        return 7

    assert run_framed(call, "nprof") == 7
    assert capfd.readouterr().err == ("interrupted: finishing first what was begun; once more gives it up\n")
    assert not run_framed(is_asked_to_end, "nprof")


@pytest.mark.parametrize("number", ASKING)
def test_a_second_signal_gives_it_up(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    def call() -> None:
        run_program(["true"], os.environ)
        ask(signal.SIGINT)
        try:
            ask(number)
        except KeyboardInterrupt as interrupt:  # as a library tells it
            raise RuntimeError("Query interrupted") from interrupt

    assert run_framed(call, "nprof") == 128 + number
    assert capfd.readouterr().err.endswith("nprof: error: interrupted\n")


@pytest.mark.parametrize("number", ASKING)
def test_an_error_that_comes_of_a_signal_is_told_as_that(
    number: int, capfd: pytest.CaptureFixture[str]
) -> None:
    def call() -> None:
        try:
            ask(number)
        except KeyboardInterrupt as interrupt:  # as DuckDB's are told
            raise UsageError("t.db: the trace cannot be read: Query interrupted") from interrupt

    assert run_framed(call, "nprof") == 128 + number
    assert capfd.readouterr().err == "nprof: error: interrupted\n"


def test_an_error_after_a_signal_that_was_held_back_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    def call() -> None:
        run_program(["true"], os.environ)
        ask(signal.SIGTERM)
        raise UsageError("t.db: cannot be written")

    assert run_framed(call, "nprof") == 2
    assert capfd.readouterr().err.endswith("nprof: error: t.db: cannot be written\n")


class AskedWhenFreed:
    """What is raised while Python frees an object is dropped."""

    def __del__(self) -> None:
        ask(signal.SIGTERM)


def test_what_interrupts_where_nothing_can_be_raised_interrupts_after(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def call() -> None:
        AskedWhenFreed()
        signal.sigtimedwait([signal.SIGCHLD], 60)

    assert run_framed(call, "nprof") == 128 + signal.SIGTERM
    assert capfd.readouterr().err == "nprof: error: interrupted\n"


def test_ignored_signals_stay_ignored() -> None:
    program = """
import os, signal
from numaplan.common.command_line.frame import run_framed
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def call():
    os.kill(os.getpid(), signal.SIGHUP)
    return 5
os._exit(run_framed(call, "x"))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 5


def test_signals_while_it_tidies_up_do_not_break_that_off() -> None:
    removed = []

    def remove() -> None:
        ask(signal.SIGTERM)
        removed.append(True)

    def call() -> None:
        try:
            ask(signal.SIGINT)
        finally:
            ask(signal.SIGHUP)
            remove()

    assert run_framed(call, "nprof") == 128 + signal.SIGTERM
    assert removed == [True]


def test_a_folder_goes_whenever_a_signal_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(prefix: str, dir: Path) -> str:
        made = os.path.join(dir, prefix)  # noqa: PTH118
        os.mkdir(made)  # noqa: PTH102
        ask(signal.SIGINT)
        return made

    def remove(folder: Path, _ignore: bool) -> None:
        asked.append(len(asked))
        if len(asked) == 1:
            ask(signal.SIGINT)
        folder.rmdir()

    def call() -> None:
        with temporary_folder("x", tmp_path):
            pass

    asked: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.mkdtemp", make)
        assert run_framed(call, "nprof") == 128 + signal.SIGINT
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("shutil.rmtree", remove)
    assert run_framed(call, "nprof") == 128 + signal.SIGINT
    assert not list(tmp_path.iterdir())
    assert asked == [0, 1]


def test_a_child_that_is_no_program_yet_dies_of_the_signal() -> None:
    """In a Python of its own: in one that has threads, forking is no good (and a warning from 3.12 on)."""
    program = """
import os
from numaplan.common.command_line.frame import run_framed

def call():
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), 15)
        os._exit(0)
    return -os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

print(run_framed(call, "nprof"))
"""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert (done.stdout, done.stderr) == (f"{signal.SIGTERM.value}\n", "")


def test_python_is_not_interrupted_within_the_locks_of_its_imports() -> None:
    """A signal that comes there interrupts what is done next."""
    program = """
import importlib, os, signal, sys, threading
from numaplan.common.command_line.frame import run_framed
locks = importlib._bootstrap._ModuleLockManager
before = locks.__exit__

def interrupted(self, *error):
    locks.__exit__ = before
    exec(compile("import os; os.kill(os.getpid(), 15)", "<frozen importlib._bootstrap>", "exec"))
    before(self, *error)

def call():
    locks.__exit__ = interrupted
    import wave
    threading.Event().wait()

code = run_framed(call, "x")
other = threading.Thread(target=__import__, args=["quopri"])
other.start()
other.join()
print(hasattr(sys.modules["wave"], "open"), code)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True)
    assert done.stdout.split() == ["True", str(128 + signal.SIGTERM)]
    assert done.stderr == "x: error: interrupted\n"
