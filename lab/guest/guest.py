"""A booted guest: starts QEMU, talks to the agent in it, runs jobs, and leaves nothing behind."""

import math
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from numaplan.common import MachineLacksError, NotSoError

from ..places import QEMU, lab_part
from .health import Patience, Pulse
from .initramfs import initial_files
from .job import Job, job_frame
from .kernel import installed_kernel
from .qemu import command_line, plugin_name, qemu_version, sampler_bytes, spawn
from .shape import GuestShape
from .streams import Intake, Outlet

BOOT_LIMIT = 180.0  # seconds; a boot takes about three on an idle host
GRACE = 30.0  # seconds beyond a job's own time limit before the guest is given up
FRAME_LIMIT = 1 << 20
PORTS = ("control", "stdin", "stdout", "stderr")
TIMED_OUT = 124  # as timeout(1) has it
VMSTAT = (
    "numa_pages_migrated",
    "pgmigrate_success",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pte_updates",
    "pgfault",
)


@dataclass(frozen=True)
class Outcome:
    """How a job ended: `exit_code` as a shell tells it, `numbers` what the kernel counted meanwhile."""

    exit_code: int
    late: bool
    seconds: float
    numbers: Mapping[str, int]
    counts: bytes


class GuestError(NotSoError):
    """The guest itself failed (not the program in it)."""


class GuestHungError(GuestError):
    """It will not answer any more: another one may."""


class Guest:
    """One booted machine; a context manager. Jobs run one after another.

    folder: for the guest's files, empty; counted: whether the plugin is there; patience: if it hangs.
    """

    def __init__(
        self, shape: GuestShape, folder: Path, counted: bool = True, patience: Patience | None = None
    ) -> None:
        self.shape = shape
        self._folder = folder
        self._counted = counted
        self._process: subprocess.Popen[bytes] | None = None
        self._sockets: dict[str, socket.socket] = {}
        self._outlets: dict[str, Outlet] = {}
        self._pulse = Pulse(folder, len(shape.machine.cpus), counted, patience or Patience())
        self._lost = False  # a run was broken off: what the agent says next answers nothing
        self.boot_seconds = 0.0

    def __enter__(self) -> "Guest":
        try:
            self._boot()
        except BaseException:
            self._destroy()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._lost:
            self._shut_down()
        self._destroy()

    def cpu_seconds(self) -> float:
        """Processor time QEMU has used so far."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> int:
        """The most memory QEMU has held so far, in MiB."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM"))

    def run(
        self, job: Job, stdin: int = -1, stdout: int = -1, stderr: int = -1, trace: Path | None = None
    ) -> Outcome:
        """Run a job to its end with its streams on these descriptors (-1: none).

        stdin can be given to one job of a guest only; trace: a file to which the kernel's trace of births of
        tasks is written. Raises GuestError when the guest fails or failed before, and when the
        program could not be started.
        """
        if self._lost:
            raise GuestError("the guest was lost in an earlier run", "boot another")
        self._lost = True
        outcome = self._run(job, stdin, stdout, stderr, trace)
        self._lost = False
        return outcome

    def _run(self, job: Job, stdin: int, stdout: int, stderr: int, trace: Path | None) -> Outcome:
        self._outlets["stdout"].direct(stdout)
        self._outlets["stderr"].direct(stderr)
        self._send(job_frame(job, stdin >= 0, trace))
        if stdin >= 0:
            Intake(stdin, self._sockets["stdin"])
        answer = self._receive(job.timeout + GRACE if job.timeout else None)
        for name, outlet in self._outlets.items():
            if not outlet.wait(int(answer[name]), GRACE):
                raise GuestError(
                    f"the guest's {name} stopped short", "run it again with --debug and report it"
                )
        if answer["event"] == "failed":
            self._lost = False
            reason = os.strerror(int(answer["error"]))
            raise GuestError(
                f"{job.argv[0]}: {reason} (in the guest)", "give a program that runs on this machine"
            )
        return self._outcome(answer)

    def _outcome(self, answer: Mapping[str, str]) -> Outcome:
        status = int(answer["status"])
        late = answer["late"] == "1"
        code = os.waitstatus_to_exitcode(status)
        return Outcome(
            exit_code=TIMED_OUT if late else 128 - code if code < 0 else code,
            late=late,
            seconds=int(answer["milliseconds"]) / 1000,
            numbers={key: int(value) for key, value in answer.items() if key in VMSTAT},
            counts=(self._folder / "counts").read_bytes() if self._counted else b"",
        )

    def _boot(self) -> None:
        started = time.monotonic()
        version = qemu_version()
        if version is None:
            raise MachineLacksError(f"{QEMU} is not installed or does not run", "run 'nlab doctor'")
        kernel = installed_kernel()
        initrd = self._folder / "initrd"
        initrd.write_bytes(initial_files(lab_part("guest.elf"), kernel.modules))
        theirs = {}
        for name in PORTS:
            self._sockets[name], theirs[name] = socket.socketpair()
        plugin = lab_part(plugin_name(version)) if self._counted else None
        with (self._folder / "samples").open("wb") as samples:
            samples.truncate(sampler_bytes(len(self.shape.machine.cpus)))
        ports = [(name, end.fileno()) for name, end in theirs.items()]
        command = command_line(self.shape, kernel.image, initrd, self._folder, ports, plugin)
        with (self._folder / "qemu").open("wb") as errors:
            self._process = spawn(command, [number for _, number in ports], errors.fileno())
        for end in theirs.values():
            end.close()  # so that its end is ours to see when QEMU goes
        for name in ("stdout", "stderr"):
            closed = f"closed\0{name}\0".encode()
            self._outlets[name] = Outlet(self._sockets[name], partial(self._send, closed))
        self._check_topology(self._receive(BOOT_LIMIT))
        self._check_calibration()
        self._pulse.booted = True
        self.boot_seconds = time.monotonic() - started

    def _check_topology(self, ready: Mapping[str, str]) -> None:
        """The guest's kernel must have made of our tables what we meant."""
        homes = {
            int(key.removeprefix("cpu")): int(node) for key, node in ready.items() if key.startswith("cpu")
        }
        if homes != self.shape.machine.node_of_cpu:
            raise GuestError(f"the guest numbered its cpus {homes}", "try --scale, and report it")

    def _check_calibration(self) -> None:
        if not self._counted:
            return
        with suppress(FileNotFoundError):
            text = (self._folder / "calibration").read_text()
            if text.startswith("ok "):
                return
        raise GuestError(
            "the plugin could not learn which memory is whose", "report it with 'nlab doctor --json'"
        )

    def _send(self, payload: bytes) -> None:
        try:
            self._sockets["control"].sendall(struct.pack("<I", len(payload)) + payload)
        except OSError:
            self._fail()

    def _receive(self, limit: float | None) -> dict[str, str]:
        end = time.monotonic() + limit if limit else math.inf
        self._pulse.rest()
        try:
            (length,) = struct.unpack("<I", self._receive_exactly(4, end))
            if length > FRAME_LIMIT:
                raise GuestError(f"a frame of {length} bytes from the guest", "report it")
            fields = self._receive_exactly(length, end).decode().split("\0")
        except TimeoutError:
            raise GuestHungError(
                f"the guest did not answer within {limit:.0f} s", self._last_words()
            ) from None
        return dict(zip(fields[0:-1:2], fields[1:-1:2], strict=True))

    def _receive_exactly(self, count: int, end: float) -> bytes:
        """Raises TimeoutError when it has not come by then, GuestError when it cannot come any more."""
        data = b""
        while len(data) < count:
            wait = min(end - time.monotonic(), self._pulse.patience.asked_every)
            self._sockets["control"].settimeout(max(0.001, wait))
            with suppress(ConnectionError):
                try:
                    more = self._sockets["control"].recv(count - len(data))
                except TimeoutError:
                    self._check_health(end)
                    continue
                if more:
                    data += more
                    continue
            self._fail()
        return data

    def _check_health(self, end: float) -> None:
        if self._pulse.stopped():
            raise GuestHungError("the virtual machine hangs, by a fault of QEMU", "run it again")
        if time.monotonic() >= end:
            raise TimeoutError

    def _fail(self) -> NoReturn:
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
        raise GuestError("the guest stopped", self._last_words())

    def _last_words(self) -> str:
        """What QEMU or the guest's kernel said last."""
        for name in ("qemu", "console"):
            with suppress(OSError):
                lines = (self._folder / name).read_text(errors="replace").split("\n")
                if spoken := [line.strip() for line in lines if line.strip()]:
                    return f"it said: {spoken[-1][:300]}"
        return "it said nothing; try again with a smaller machine"

    def _shut_down(self) -> None:
        """The agent powers off when the control port closes, after writing back all files."""
        assert self._process is not None
        self._sockets["control"].shutdown(socket.SHUT_WR)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)

    def _destroy(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for end in self._sockets.values():
            end.close()


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP end the lab as Ctrl-C does: with the guest gone and nothing left behind."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
