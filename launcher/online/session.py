"""Put a loop together for a program that we start, or for processes that run already."""

import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType

from numaplan.common import MachineLacksError, UsageError
from numaplan.common.process import find_program, run_program
from numaplan.launcher.online import procfs
from numaplan.launcher.online.acting import Hands
from numaplan.launcher.online.actions import Policy
from numaplan.launcher.online.bindings import Bindings, Cpus
from numaplan.launcher.online.budget import Budget
from numaplan.launcher.online.journal import Journal
from numaplan.launcher.online.loop import Loop
from numaplan.launcher.online.observation import MachineView
from numaplan.launcher.online.observing import Observer
from numaplan.launcher.online.options import SAMPLE_PERIOD, OnlineOptions
from numaplan.launcher.online.registry import make_policy
from numaplan.launcher.online.reveal import Revealer
from numaplan.launcher.online.status import Status, summary
from numaplan.profiler.live_sampling import LiveEvents, LiveSampler, live_events
from numaplan.profiler.machine import Machine

_WINDOW = 1.5  # periods that a hardware sample counts
_FAULT_WINDOW = 8.0  # periods; faults are few
_FAULT_SHARE = 0.01  # of all cpus' time that making touches visible may cost
_LEFT_FOR_PERF = 5.0  # seconds
_CONTENTION = ("di-plain", "first-fit", "tm", "mb", "bce", "mb+", "excl-base", "excl")


class Session:
    """One loop on some processes, in a thread of its own."""

    def __init__(self, options: OnlineOptions, machine: Machine, planned: Sequence[Cpus] = ()) -> None:
        """Everything that can be wrong before a program starts: raises UsageError, MachineLacksError."""
        self.options = options
        self._policy = make_policy(options.policy, options.settings)
        self._events = _events_for(self._policy, options.backend)
        self._journal = Journal(options.journal)
        self._machine = machine
        self._planned = frozenset(planned)
        self._roots: tuple[int, ...] = ()
        self._loop: Loop | None = None
        self._thread: threading.Thread | None = None
        self._status = Status(options.quiet)

    def prepare(self, pids: Sequence[int]) -> None:
        """Start the sampler on processes that run, or on our own before it starts the program."""
        view = MachineView.of(self._machine)
        bindings = Bindings(self._planned)
        events = self._events
        faults = events is not None and events.backend == "faults"
        period = self._policy.period_s
        observer = Observer(
            view,
            bindings,
            period * (_FAULT_WINDOW if faults else _WINDOW),
            estimate=bool({"misses", "counters"} & self._policy.needs),
            resident="resident" in self._policy.needs,
        )
        cpus_of = {node.id: frozenset(node.cpus) for node in self._machine.nodes}
        base = self.options.policy.removesuffix("+next-touch")
        self._loop = Loop(
            self.options.policy,
            self._policy,
            observer,
            Hands(cpus_of, bindings, Budget(self.options.moves, self.options.megabytes)),
            self._journal,
            Revealer(_FAULT_SHARE, len(view.cpu_ids)),
            lambda: [pid for pid in self._roots if procfs.is_alive(pid)],
            LiveSampler(events, pids) if events else None,
            (lambda: LiveSampler(events, self._roots)) if events else None,
            waiting_only=base in _CONTENTION,
            told=self._status.show,
        )
        for warning in warnings(self._machine, self._loop):
            self._status.say(warning)

    def start(self, roots: Sequence[int]) -> None:
        """Begin to refine these processes."""
        assert self._loop is not None
        self._roots = tuple(roots)
        self._thread = threading.Thread(target=self._loop.run, name="online", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until the loop ends by itself."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.2)

    def stop(self, restore: bool) -> None:
        """End the loop and say what it did. restore: give threads their first masks back."""
        loop = self._loop
        if loop is None:
            return
        loop.stop.set()
        if self._thread is not None:
            self._thread.join(_LEFT_FOR_PERF)
        if loop.sampler is not None:
            loop.sampler.close()
        restored = loop.hands.bindings.restore() if restore else 0
        self._status.end()
        self._journal.write(policy=self.options.policy, note="detached", restored=restored)
        self._journal.close()
        self._status.say(summary(self.options.policy, loop, restored))
        if self._journal.problem:
            self._status.say(f"the journal is not complete: {self._journal.problem}")


def _events_for(policy: Policy, backend: str) -> LiveEvents | None:
    """What to sample for a policy; None when it needs no samples and there is no sampler."""
    try:
        return live_events(backend, SAMPLE_PERIOD)
    except MachineLacksError:
        if {"accesses", "misses", "counters"} & policy.needs:
            raise
        return None


def warnings(machine: Machine, loop: Loop) -> list[str]:
    """What a user should know before it begins."""
    found = []
    if len(machine.cpu_nodes) < 2:
        found.append("this machine has one node with cpus: there is nothing to move between nodes")
    if loop.policy.balances:
        found.append(
            f"{loop.name} takes the place of the kernel's balancing between nodes, which goes on beside it"
        )
    if procfs.numa_balancing() & 1:
        found.append(
            "the kernel's own NUMA balancing is on and moves pages and threads, too; to leave them to "
            f"{loop.name}: sudo sysctl kernel.numa_balancing=0"
        )
    elif (
        loop.sampler
        and loop.sampler.what.backend == "faults"
        and not loop.revealer.works
        and "accesses" in loop.policy.needs
    ):
        found.append(
            "page faults are all that can be sampled here, each page once: the policy will see first touches"
            " only (sudo sysctl kernel.numa_balancing=1 makes them recur)"
        )
    return found


def launch_online(
    options: OnlineOptions, argv: Sequence[str], environment: Mapping[str, str] | None = None
) -> int:
    """Run a program without a plan and refine its placement; returns its exit code."""
    find_program(argv)
    session = Session(options, Machine.load("local"))
    session.prepare([os.getpid()])
    try:
        return run_program(
            argv,
            dict(os.environ if environment is None else environment),
            started=lambda pid: session.start([pid]),
        )
    finally:
        session.stop(restore=False)


def attach_online(options: OnlineOptions, pids: Sequence[int]) -> int:
    """Refine running processes until they end or Ctrl-C; then their threads get their first masks back.

    Raises UsageError for processes that are not there or belong to others.
    """
    for pid in pids:
        check_ours(pid)
    session = Session(options, Machine.load("local"))
    with _Interruptible() as interrupted:
        session.prepare(pids)
        session.start(pids)
        with suppress(KeyboardInterrupt):
            session.wait()
        session.stop(restore=True)
    return interrupted()


def check_ours(pid: int) -> None:
    """Raises UsageError unless the process runs and is ours to move (root may name any)."""
    who = procfs.owner(pid)
    if who is None or not procfs.is_alive(pid):
        raise UsageError(f"no process {pid}", "give the id of one that runs")
    if os.geteuid() not in (0, who):
        raise UsageError(f"process {pid} belongs to another user", "only your own can be refined")


def own_processes() -> list[int]:
    """All processes of this user but ourselves and those that we descend from."""
    ours = {os.getpid()}
    pid = os.getpid()
    while (parent := procfs.parent_of(pid)) > 1:
        ours.add(parent)
        pid = parent
    return [pid for pid in procfs.processes_of(os.geteuid()) if pid not in ours]


class _Interruptible:
    """SIGTERM and SIGHUP end an attachment as Ctrl-C does."""

    def __enter__(self) -> Callable[[], int]:
        self._code = 0
        self._before = {
            number: signal.signal(number, self._interrupt)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        return lambda: self._code

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        self._code = 128 + number
        raise KeyboardInterrupt
