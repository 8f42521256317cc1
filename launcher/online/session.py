"""Build a loop from the options, run it in a thread, and report what it did."""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from numaplan.common import MachineLacksError, as_text, check_output, counted
from numaplan.machine import Machine
from numaplan.mapper import MachineView, Policy, make_policy
from numaplan.profiler import LiveEvents, Sampler, live_events, start_sampler

from ..process.soft_dirty import SoftDirtyProbe
from .actuator import Actuator, Budget
from .bindings import Bindings
from .loop import Loop
from .observer import Observer
from .options import SAMPLE_PERIOD, OnlineOptions
from .reporting import Journal, Status, summary
from .system import Cpus, LocalSystem, System

_FAULT_WINDOW = 2.5  # periods that a fault counts, as they are few; of other samples those of one interval do
_MEMORY_SHARE = 0.3  # of its time that a thread is taken to wait for memory where nothing tells
_FAULT_SHARE = 0.01  # of all cpus' time that making touches visible may cost
_JOIN_SECONDS = 5.0


class OnlineSession:
    """One loop on some processes, in a thread of its own.

    pids: what to sample from now on: processes that run, or ourselves, who start the program later; planned:
    masks that a plan gave; system, sampler: of another machine than this. Raises UsageError and
    MachineLacksError for all that can be wrong before that.
    """

    def __init__(
        self,
        options: OnlineOptions,
        machine: Machine,
        pids: Sequence[int],
        planned: Sequence[Cpus] = (),
        *,
        live: bool = False,
        system: System | None = None,
        sampler: Sampler | None = None,
    ) -> None:
        if options.save:
            check_output(options.save)
        self.options = options
        self._machine = machine
        policy = make_policy(options.policy, options.settings)
        self._system = system or LocalSystem()
        events = sampler.what if sampler else events_for(policy, options.backend)
        self._journal = Journal(options.journal)
        self._roots: Callable[[], Sequence[int]] = tuple
        self._thread: threading.Thread | None = None
        self._status = Status(options.quiet, live)
        view, everything = MachineView.of(machine), frozenset(machine.cpus)
        # What we start may have no more than we (taskset), whatever its plan names.
        everything = everything.intersection(*(self._system.allowed_cpus(pid) or everything for pid in pids))
        bindings = Bindings(frozenset(planned), self._system, everything)
        faults = events is not None and events.backend == "faults"
        observer = Observer(
            view,
            bindings,
            policy.period_s * _FAULT_WINDOW if faults else 0.0,
            estimate=bool({"misses", "counters"} & policy.needs),
            resident="resident" in policy.needs,
            memory_share=_MEMORY_SHARE if faults else 0.0,
            timed=events is None or not events.unloaded,
        )
        cpus_of = {node.id: frozenset(node.cpus) for node in machine.nodes}
        self._loop = Loop(
            options.policy,
            policy,
            observer,
            Actuator(cpus_of, bindings, Budget(options.moves, options.megabytes)),
            self._journal,
            SoftDirtyProbe(_FAULT_SHARE, len(view.cpu_ids)),
            lambda: [pid for pid in self._roots() if self._system.is_alive(pid)],
            sampler or (self._sample(events, pids, policy) if events else None),
            (lambda: self._sample(events, self._roots(), policy)) if events and not sampler else None,
            own_share=options.overhead,
            waiting_only=policy.trades_distance,
            confines=not policy.trades_distance,
            on_interval=self._status.show,
        )
        self._loop.warm_up(os.getpid())
        for warning in warnings(machine, self._loop, self._system):
            self._status.say(warning)

    def _sample(self, events: LiveEvents, pids: Sequence[int], policy: Policy) -> Sampler | None:
        """Sample these processes; None where that fails and the policy needs no samples."""
        try:
            return start_sampler(events, pids)
        except MachineLacksError as error:
            if needs_samples(policy):
                raise
            self._status.say(f"without samples: {error.what}")
            return None

    def start(self, roots: Callable[[], Sequence[int]]) -> None:
        """Begin to refine these processes, which may come and go."""
        self._roots = roots
        self._thread = threading.Thread(target=self._loop.run, name="online", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until the loop ends by itself."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.2)

    def stop(self, restore: bool) -> None:
        """End the loop and say what it did. restore: give threads their first masks back."""
        loop = self._loop
        loop.stop.set()
        if self._thread is not None:
            self._thread.join(_JOIN_SECONDS)
        if loop.sampler is not None:
            loop.sampler.close()
        restored = loop.actuator.bindings.restore() if restore else 0
        self._status.end()
        self._journal.write(policy=self.options.policy, note="detached", restored=restored)
        self._journal.close()
        self._status.say(summary(self.options.policy, loop.tally, loop.actuator, restored))
        if self._journal.problem:
            self._status.say(f"the journal is not complete: {self._journal.problem}")

    def moves(self) -> str:
        """What was moved, in words."""
        actuator = self._loop.actuator
        moves, pages = counted(actuator.threads_moved, "thread move"), counted(actuator.pages_moved, "page")
        return f"{moves}, {pages}"

    def save(self, argv: Sequence[str], workdir: Path) -> None:
        """Write the refined placement, if that was asked for. workdir: where the program's identities are."""
        if not self.options.save:
            return
        from numaplan.profiler import read_identity

        from .saving import refined_plan

        last = self._loop.last
        observation = last.observation if last else None
        identity, bindings = read_identity(workdir), self._loop.actuator.bindings
        plan = refined_plan(
            self.options.policy, tuple(as_text(argv)), self._machine, observation, identity, bindings
        )
        plan.save(self.options.save)
        what = f"{counted(len(plan.threads), 'thread')} and {counted(len(plan.memory), 'region')}"
        self._status.say(f"{what} in {self.options.save}")


def events_for(policy: Policy, backend: str) -> LiveEvents | None:
    """What to sample for a policy; None when it needs no samples and there is no sampler.

    Raises MachineLacksError when there is none and it needs some, UsageError for an unknown backend.
    """
    try:
        return live_events(backend, SAMPLE_PERIOD)
    except MachineLacksError:
        if needs_samples(policy):
            raise
        return None


def needs_samples(policy: Policy) -> bool:
    """Whether a policy decides by anything that is sampled."""
    return bool({"accesses", "misses", "counters"} & policy.needs)


def warnings(machine: Machine, loop: Loop, system: System) -> list[str]:
    """What a user should know before it begins."""
    found = []
    if len(machine.cpu_nodes) < 2:
        found.append("this machine has one node with cpus: there is nothing to move between nodes")
    if loop.policy.balances:
        found.append(f"{loop.name} replaces the kernel's balancing between nodes, which continues beside it")
    if system.numa_balancing() & 1:
        found.append(
            "the kernel's own NUMA balancing is on and moves pages and threads, too; to leave them to "
            f"{loop.name}: sudo sysctl kernel.numa_balancing=0"
        )
    elif (
        loop.sampler
        and loop.sampler.what.backend == "faults"
        and not loop.probe.works
        and "accesses" in loop.policy.needs
    ):
        found.append(
            "page faults are all that can be sampled here, each page once: the policy will see first touches"
            " only (sudo sysctl kernel.numa_balancing=1 makes them recur)"
        )
    return found
