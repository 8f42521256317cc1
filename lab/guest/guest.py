"""A booted guest: starts QEMU, talks to the agent in it, runs jobs, and leaves nothing behind."""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

from numaplan.common import MachineLacksError, surely, uninterrupted
from numaplan.profiler import plugin_interface, qemu_version

from ..places import QEMU, lab_part
from .cable import Cable
from .control import Control, GuestError
from .health import Heartbeat, Patience
from .initramfs import initial_files
from .job import Job, job_frame
from .kernel import installed_kernel
from .kernel_types import waiting_since
from .qemu import caches_of, command_line, sampler_bytes, spawn
from .shape import GuestShape
from .streams import Outlet, pass_on

BOOT_LIMIT = 180.0  # seconds; a boot takes about three on an idle host
GRACE = 30.0  # seconds beyond a job's own time limit before the guest is given up
PORTS = ("control", "stdin", "stdout", "stderr", "online")
TIMED_OUT = 124  # as timeout(1) has it
# Lines of the plugin's file `calibration`.
_MISSING = {"no caches": "the caches to model", "no queues": "when tasks wait for their cpus"}
VMSTAT = (
    "numa_pages_migrated",
    "pgmigrate_success",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pte_updates",
    "pgfault",
    "compacted",
    "moved",
)


@dataclass(frozen=True)
class Outcome:
    """How a job ended: `exit_code` as a shell tells it, `numbers` what the kernel counted meanwhile.

    moments: its start and end by the guest's and the host's CLOCK_MONOTONIC, in ns; 0 without the plugin.
    """

    exit_code: int
    late: bool
    seconds: float
    numbers: Mapping[str, int]
    counts: bytes
    moments: tuple[tuple[int, int], tuple[int, int]]


class Guest:
    """One booted machine; a context manager. Jobs run one after another.

    folder: for the guest's files, empty; counted: whether the plugin is there; cache: whether it models
    caches; patience: if it hangs; recording: what it is told instead if it records its only job; cable: to
    other guests.
    """

    def __init__(
        self,
        shape: GuestShape,
        folder: Path,
        counted: bool = True,
        cache: bool = False,
        patience: Patience | None = None,
        recording: Sequence[str] = (),
        cable: Cable | None = None,
    ) -> None:
        self.shape = shape
        self._folder = folder
        self._counted = counted
        self._caches = recording or (caches_of(shape.machine) if cache else ())
        self._waits = cache or bool(recording)
        self._cable = cable
        self._process: subprocess.Popen[bytes] | None = None
        self._sockets: dict[str, socket.socket] = {}
        self._outlets: dict[str, Outlet] = {}
        self._heartbeat = Heartbeat(folder, len(shape.machine.cpus), counted, patience or Patience())
        self._lost = False  # a run was broken off: what the agent says next answers nothing
        self._started = 0.0
        self.boot_seconds = 0.0

    def __enter__(self) -> "Guest":
        try:
            self.start()
            self.wait_until_ready()
        except BaseException:
            self.destroy()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._lost:
            self._shut_down()
        self.destroy()

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self._folder

    @property
    def online_port(self) -> socket.socket:
        """Where the agent serves a loop on the host while a job runs."""
        return self._sockets["online"]

    @property
    def pid(self) -> int:
        """QEMU's process."""
        assert self._process is not None
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send a signal to the job that runs; raises GuestError when the guest has stopped."""
        self._control.send(f"signal\0{number}\0".encode())

    def run(
        self, job: Job, stdin: int = -1, stdout: int = -1, stderr: int = -1, trace: Path | None = None
    ) -> Outcome:
        """Run a job to its end with its streams on these descriptors (-1: none).

        stdin can be given to one job of a guest only; trace: a file to which the kernel's trace of births of
        tasks is written. Raises GuestError when the guest fails or failed before, and when the
        program could not be started.
        """
        self.begin(job, stdin, stdout, stderr, trace)
        return self.finish(job)

    def begin(
        self, job: Job, stdin: int = -1, stdout: int = -1, stderr: int = -1, trace: Path | None = None
    ) -> None:
        """Start a job, as `run`; what is to come then is `finish`."""
        if self._lost:
            raise GuestError("the guest was lost in an earlier run", "boot another")
        self._lost = True
        self._outlets["stdout"].direct(stdout)
        self._outlets["stderr"].direct(stderr)
        self._control.send(job_frame(job, stdin >= 0, trace))
        self._heartbeat.reset()
        if stdin >= 0:
            threading.Thread(target=pass_on, args=(stdin, self._sockets["stdin"]), daemon=True).start()

    def finish(self, job: Job, meanwhile: Callable[[], None] | None = None) -> Outcome:
        """Wait for the end of the job that was begun, as `run`; meanwhile: called every now and then."""
        answer = self._control.receive(job.timeout + GRACE if job.timeout else None, meanwhile)
        for name, outlet in self._outlets.items():
            if not outlet.wait(int(answer[name]), GRACE):
                raise GuestError(
                    f"the guest's {name} stopped short", "run it again with --debug and report it"
                )
        if answer["event"] == "failed":
            self._lost = False
            raise _not_started(job, int(answer["error"]))
        self._lost = False
        return self._outcome(answer)

    def check(self) -> None:
        """To be called every now and then while nobody waits for it; raises GuestError when it can do nothing
        any more."""
        self._control.check()

    def _outcome(self, answer: Mapping[str, str]) -> Outcome:
        status = int(answer["status"])
        late = answer["late"] == "1"
        code = os.waitstatus_to_exitcode(status)
        return Outcome(
            exit_code=TIMED_OUT if late else 128 - code if code < 0 else code,
            late=late,
            seconds=int(answer["milliseconds"]) / 1000,
            numbers={key: int(value) for key, value in answer.items() if key in VMSTAT},
            moments=(
                (int(answer["guest_began"]), int(answer["host_began"])),
                (int(answer["guest_ended"]), int(answer["host_ended"])),
            ),
            counts=(self._folder / "counts").read_bytes() if self._counted else b"",
        )

    def start(self) -> None:
        """Start QEMU; `destroy` is then to be called, whatever happens."""
        self._started = time.monotonic()
        version = qemu_version([QEMU])
        if version is None:
            raise MachineLacksError(f"{QEMU} is not installed or does not run", "run 'nlab doctor'")
        kernel = installed_kernel()
        initrd = self._folder / "initrd"
        modules = (*kernel.modules, *(kernel.network if self._cable else ()))
        initrd.write_bytes(initial_files(lab_part("guest.elf"), modules))
        qemu_ends = {}
        for name in PORTS:
            self._sockets[name], qemu_ends[name] = socket.socketpair()
        plugin = lab_part("plugin.so") if self._counted else None
        with (self._folder / "samples").open("wb") as samples:
            samples.truncate(sampler_bytes(len(self.shape.machine.cpus)))
        ports = [(name, end.fileno()) for name, end in qemu_ends.items()]
        command = command_line(
            self.shape,
            kernel.image,
            initrd,
            self._folder,
            ports,
            plugin,
            [*self._caches, *([f"queued_at={waiting_since(kernel.image)}"] if self._waits else [])],
            version=version,
            cable=self._cable,
        )
        passed = [number for _, number in ports] + ([self._cable.end.fileno()] if self._cable else [])
        with (self._folder / "qemu").open("wb") as errors, uninterrupted():
            self._process = spawn(command, passed, errors.fileno(), plugin_interface(version))
        for end in qemu_ends.values():
            end.close()  # so that its end is ours to see when QEMU goes
        self._control = Control(self._sockets["control"], self._process, self._folder, self._heartbeat)
        for name in ("stdout", "stderr"):
            closed = f"closed\0{name}\0".encode()
            self._outlets[name] = Outlet(self._sockets[name], partial(self._control.send, closed))

    def wait_until_ready(self) -> None:
        """The end of its boot; raises GuestError when it fails."""
        self._check_topology(self._control.receive(BOOT_LIMIT))
        self._check_calibration()
        self._heartbeat.booted = True
        self.boot_seconds = time.monotonic() - self._started

    def _check_topology(self, ready: Mapping[str, str]) -> None:
        """The guest's kernel must have made of our tables what we meant."""
        node_of_cpu = {
            int(key.removeprefix("cpu")): int(node) for key, node in ready.items() if key.startswith("cpu")
        }
        if node_of_cpu != self.shape.machine.node_of_cpu:
            raise GuestError(f"the guest numbered its cpus {node_of_cpu}", "try --scale, and report it")

    def _check_calibration(self) -> None:
        if not self._counted:
            return
        lines = []
        with suppress(FileNotFoundError):
            lines = (self._folder / "calibration").read_text().splitlines()
        failed = [line for line in _MISSING if line in lines]
        if failed or not lines or not lines[0].startswith("ok "):
            what = _MISSING[failed[0]] if failed else "which memory belongs to which node"
            raise GuestError(f"the plugin could not learn {what}", "report it with 'nlab doctor --json'")

    def _shut_down(self) -> None:
        """The agent powers off when the control port closes, after writing back all files."""
        assert self._process is not None
        self._sockets["control"].shutdown(socket.SHUT_WR)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)

    def destroy(self) -> None:
        """End it at once, and leave nothing of it behind."""
        if self._process is not None:
            self._process.kill()
            surely(self._process.wait)
        for end in self._sockets.values():
            end.close()


def _not_started(job: Job, error: int) -> GuestError:
    """error: why the program cannot be; below 0, why the guest cannot enter its folder."""
    reason = f"{os.strerror(abs(error))} (in the guest)"
    if error < 0:
        return GuestError(
            f"{job.directory}: {reason}", "start in another folder: /dev/shm and /proc are its own"
        )
    return GuestError(f"{job.argv[0]}: {reason}", "give a program that runs on this machine")
