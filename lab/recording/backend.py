"""The `lab` backend: the program in the guest of `nlab`, whose plugin sees every access of all its processes.

For programs that QEMU's user mode cannot run, services of several programs, and systems whose user mode has
no plugins. The preload library logs in the guest as it does elsewhere; levels are those of the guest's cpus,
and pages are where its kernel puts them.
"""

import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from numaplan.common import UsageError, available_bytes, find_program, finish_first, swept_folder
from numaplan.machine import Machine, seat_arguments
from numaplan.profiler import (
    WATCHING,
    Capability,
    Progress,
    Rate,
    Recording,
    RecordRequest,
    SharedWord,
    Switch,
    live_line,
    qemu_version,
    ticking,
)

from ..guest.booting import boot
from ..guest.guest import Guest
from ..guest.job import Job
from ..guest.qemu import command_line, escaped
from ..guest.shape import GuestShape, dense, shape_guest
from ..guest.streams import own_stdin
from ..places import QEMU, TEMPORARY, lab_part, open_to_users
from ..setup.doctor import SOCKETS, diagnose
from .options import LabOptions, read_options
from .result import Run, guest_recording
from .runtime import write_runtimes
from .stream import ACCESS, recorded_bytes

MAX_PERIOD = 1 << 40
_MARKS = 0x6E6C61621000  # where processes tell the plugin what they mark; behind MARK_PAGE of marks.h
_PASSED = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip


@dataclass(frozen=True)
class _Asked:
    """A checked request."""

    program: str
    options: LabOptions
    shape: GuestShape

    def words(self, request: RecordRequest) -> list[str]:
        """What the plugin is told."""
        seats = seat_arguments(self.shape.machine) if self.options.emulation.cached else []
        runtimes = f"runtime={escaped(_runtimes(request))}"
        dropped = [runtimes] if self.options.emulation.drop_runtime else []
        return [*seats, *self.options.plugin, *dropped, *_part_words(request), f"record={request.period}"]

    def guest(self, request: RecordRequest) -> Callable[[Path], Guest]:
        """A guest with its files in the folder, where the samples will be, too."""
        return lambda folder: Guest(self.shape, folder, recording=self.words(request))


class LabBackend:
    """QEMU's system emulation of the machine, with a booted kernel and our plugin."""

    name = "lab"

    def available(self, machine: Machine) -> Capability:
        """Whether the guest can be booted here, as `nlab doctor` finds it."""
        del machine
        for check in diagnose().checks:
            if not check.ok and check.name != SOCKETS:
                hint = check.hint.removeprefix("run '").removesuffix("'")
                return Capability(False, f"{check.name}: {check.found}", hint)
        return Capability(True, "the lab's guest runs the program, and its plugin sees every access")

    def command(self, request: RecordRequest) -> list[str]:
        """QEMU's command line, with the folders that a recording makes for itself left as they are here."""
        asked = _checked(request)
        folder = request.workdir
        words = asked.words(request)
        version, plugin = qemu_version([QEMU]), lab_part("plugin.so")
        kernel, initrd = folder / "kernel", folder / "initrd"
        return command_line(asked.shape, kernel, initrd, folder, (), plugin, words, version=version)

    def record(self, request: RecordRequest, progress: Progress) -> Recording:
        """Boot a guest, run the program in it and read what the plugin wrote into its folder.

        Raises UsageError (no such program, an option, a full disk), MachineLacksError (no guest).
        """
        asked = _checked(request)
        switch = Switch(request.part, SharedWord(request.workdir).set)
        with swept_folder(TEMPORARY) as folder, ExitStack() as stack:
            progress("booting a guest", WATCHING)
            write_runtimes(_runtimes(request), asked.program, request.environment)
            guest = boot(stack, asked.guest(request), request.workdir, lambda _again: None)
            identity = _open_identity(request.identity_dir, folder)
            marks = {"NUMAPLAN_MARKS": f"{_MARKS:x}"} if request.part.marked else {}
            environment = {**request.environment, "NUMAPLAN_LOG": str(identity), **marks}
            job = Job(asked.program, request.argv, environment, str(Path.cwd()), balancing=False)
            trace = folder / "trace"
            began = time.monotonic()
            sys.stdout.flush()
            with _passed_on(guest, switch.signals), ticking(_Watch(guest.folder, progress).tick):
                switch.begin()
                try:
                    outcome = guest.run(job, own_stdin(), 1, 2, trace)
                finally:
                    switch.end()
            request.start.ended(outcome.exit_code)
            run = Run(
                outcome=outcome,
                guest=guest.folder,
                trace=trace,
                identity=identity,
                machine=request.machine,
                seconds=time.monotonic() - began,
                spans=switch.spans if request.part.by_switch else None,
            )
            return guest_recording(run, request, asked.options, progress)


def _checked(request: RecordRequest) -> _Asked:
    if not 1 <= request.period <= MAX_PERIOD:
        raise UsageError(f"period {request.period}", f"give 1 to {MAX_PERIOD}")
    if request.part.skip_accesses and request.part.take_seconds:
        raise UsageError("--skip in accesses with --take as a time", "give accesses for both, or times")
    options = read_options(request.options, request.machine)
    shape = shape_guest(dense(request.machine), options.memory_mib, available_bytes() >> 20)
    return _Asked(find_program(request.argv), options, shape)


def _part_words(request: RecordRequest) -> list[str]:
    """Which part of the run is counted exactly."""
    part = request.part
    words = {
        f"wanted={escaped(request.workdir / SharedWord.FILE)}": part.by_switch,
        f"skip={part.skip_accesses}": part.skip_accesses,
        f"take={part.take_accesses}": part.take_accesses,
        "marked=on": part.marked,
    }
    return [word for word, asked in words.items() if asked]


def _runtimes(request: RecordRequest) -> Path:
    """Where the plugin finds which code is a runtime's."""
    return request.workdir / "runtimes"


def _open_identity(prepared: Path, folder: Path) -> Path:
    """A copy of the folder that the preload library logs into, where users that the program becomes can."""
    identity = Path(tempfile.mkdtemp(dir=folder))
    shutil.copytree(prepared, identity, symlinks=True, dirs_exist_ok=True)
    open_to_users(identity)
    return identity


class _Watch:
    """Tells now and then how far the recording is."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self._folder, self._progress = folder, progress
        self._rate = Rate()

    def tick(self) -> None:
        """Every half second."""
        size = recorded_bytes(self._folder)
        samples = size // ACCESS.itemsize
        self._progress(live_line(self._rate.of(samples), samples, size, 0, 0), WATCHING)


@contextmanager
def _passed_on(guest: Guest, own: Mapping[int, Callable[[], None]]) -> Iterator[None]:
    """Inside, signals to us reach the program; a second Ctrl-C gives it up. own: what is done instead."""
    came: set[int] = set()

    def handle(number: int, _frame: object) -> None:
        if number in own:
            own[number]()
        elif number in came and number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            came.add(number)
            guest.signal(number)

    ours = threading.current_thread() is threading.main_thread()
    numbers = [number for number in _PASSED if ours and signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        finish_first()
        for number, handler in before.items():
            signal.signal(number, handler)
