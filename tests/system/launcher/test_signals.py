"""Signals sent to nlaunch alone reach the program, those of the terminal reach it once; nothing is left."""

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.commands import BIN, needs
from tests.support.launching import NLAUNCH, build
from tests.support.outside import Processes, children, comm, plan_of_threads, times_asleep
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system

COUNTS = """
import os, signal
heard, (woken, wakes) = [], os.pipe()
os.set_blocking(wakes, False)
signal.set_wakeup_fd(wakes)
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, lambda n, _: (heard.append(n), os.write(1, signal.Signals(n).name.encode())))
print("ready", flush=True)
while signal.SIGTERM not in heard:
    os.read(woken, 9)
print("heard", *heard, flush=True)
"""


def command_for(folder: Path, *argv: str, by: str = "auto") -> list[str]:
    plan_of_threads([("p0", "0"), ("p0.1", "0")]).save(folder / "plan.json")
    return [str(NLAUNCH), "-q", "--plan", str(folder / "plan.json"), "--by", by, "--", *argv]


@contextmanager
def started(folder: Path, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """The command once it has said that it is ready, its temporary files in `folder`."""
    environment = {**os.environ, "TMPDIR": str(folder)}
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=nothing, env=environment, preexec_fn=heed
    ) as launcher:
        try:
            assert launcher.stdout is not None and launcher.stdout.readline() == b"ready\n"
            yield launcher
        finally:
            if launcher.poll() is None:
                launcher.kill()


def heed() -> None:
    """The tests may be run in the background, where interrupts are ignored."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def folders(place: Path) -> list[Path]:
    return list(place.glob("nlaunch-*"))


@pytest.mark.parametrize("by", ["preload", "ptrace"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_a_signal_to_nlaunch_alone_ends_the_program(tmp_path: Path, name: str, by: str) -> None:
    with started(tmp_path, command_for(tmp_path, build("end"), "hang", by=by)) as launcher:
        below = Processes(children(launcher.pid))
        launcher.send_signal(signal.Signals[name])
        assert launcher.wait(timeout=PATIENCE_S) == 128 + signal.Signals[name]
    assert folders(tmp_path) == []
    until(lambda: not below.living())
    below.close()


def test_an_interrupt_to_nlaunch_alone_ends_a_program_without_a_plan(tmp_path: Path) -> None:
    needs("perf")
    command = [str(NLAUNCH), "-q", "--online", "numaplan", "--", build("end"), "hang"]
    with started(tmp_path, command) as launcher:
        launcher.send_signal(signal.SIGINT)
        assert launcher.wait(timeout=PATIENCE_S) == 128 + signal.SIGINT
    assert folders(tmp_path) == []


def test_the_terminals_signals_come_once(tmp_path: Path) -> None:
    command = command_for(tmp_path, "python3", "-c", COUNTS)
    pid, terminal = pty.fork()
    if pid == 0:
        heed()
        os.execv(command[0], command)
    said = b""

    def wait_for(text: bytes) -> None:
        nonlocal said
        while text not in said:
            said += os.read(terminal, 4096)

    wait_for(b"ready")
    os.write(terminal, b"\x03")  # Ctrl-C
    wait_for(b"SIGINT")
    os.write(terminal, b"\x1c")  # Ctrl-backslash
    wait_for(b"SIGQUIT")
    os.kill(pid, signal.SIGHUP)
    wait_for(b"SIGHUP")
    os.kill(pid, signal.SIGTERM)
    wait_for(b"heard 2 3 1 15")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)


@pytest.mark.parametrize("name", ["nlaunch", "online", "nprof"])
def test_ctrl_c_ends_a_script_that_starts_us_again_and_again(tmp_path: Path, name: str) -> None:
    """A shell goes on after a program that only says that it had been interrupted: it may have heeded it."""
    if name == "nlaunch":
        command = command_for(tmp_path)
    elif name == "online":
        needs("perf")
        command = [str(NLAUNCH), "-q", "--online", "excl"]
    else:
        needs("qemu-x86_64")
        command = [str(BIN / "nprof"), "record", "--backend", "emulate", "-o", str(tmp_path / "trace.db")]
    loop = 'for i in 1 2; do "$@" sh -c "echo ready; exec sleep 1000"; echo "next $?"; done'
    pid, terminal = pty.fork()
    if pid == 0:
        heed()
        os.execvpe("bash", ["bash", "-c", loop, "bash", *command], {**os.environ, "TMPDIR": str(tmp_path)})
    said, asked = b"", 0
    with suppress(OSError):  # EIO: they have gone
        while piece := os.read(terminal, 4096):
            said += piece
            if said.count(b"ready") > asked:
                asked += os.write(terminal, b"\x03")
    assert b"next" not in said, said
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGINT, said
    os.close(terminal)
    assert folders(tmp_path) == []


def test_what_was_ignored_stays_ignored(tmp_path: Path) -> None:
    command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command_for(tmp_path, build("end"), "hang")]
    with started(tmp_path, command) as launcher:
        for _ in range(3):
            launcher.send_signal(signal.SIGINT)  # which would come before what is sent after it
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(timeout=PATIENCE_S) == 128 + signal.SIGTERM


@pytest.mark.slow
def test_a_killed_nlaunch_leaves_the_plan_to_children_and_then_nothing(tmp_path: Path) -> None:
    look = "grep Cpus_allowed_list /proc/self/status"
    command = command_for(tmp_path, "sh", "-c", f"echo ready; read go; {look}; echo over")
    alone = subprocess.run(command, input=b"go\n", capture_output=True, check=True).stdout
    with started(tmp_path, command) as launcher:
        keepers = [pid for pid in children(launcher.pid) if comm(pid) == "trace.elf"]
        before = {pid: times_asleep(pid) for pid in keepers}
        launcher.kill()
        launcher.wait(timeout=PATIENCE_S)
        # Who keeps the folder has seen us go, has looked who uses it, and sleeps again.
        until(lambda: any(times_asleep(pid) >= before[pid] + 2 for pid in keepers))
        assert len(folders(tmp_path)) == 1
        assert launcher.stdin is not None and launcher.stdout is not None
        launcher.stdin.write(b"go\n")
        launcher.stdin.close()
        assert b"ready\n" + launcher.stdout.read() == alone
        launcher.stdin = None
    until(lambda: not folders(tmp_path))


def test_a_killed_group_leaves_nothing(tmp_path: Path) -> None:
    command = command_for(tmp_path, build("end"), "hang")
    with started(tmp_path, command) as launcher:
        below = Processes(children(launcher.pid))
        launcher.kill()
        below.kill(*set(below.living()) - set(below.living("trace.elf")))
    until(lambda: not folders(tmp_path))
    until(lambda: not below.living())
    below.close()
