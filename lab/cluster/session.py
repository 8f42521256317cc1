"""A job on guests that are joined by a network: booted together, run, counted, and taken down."""

import math
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from numaplan.common import MachineLacksError, UsageError, find_program, swept_folder, temporary_folder
from numaplan.machine import Host
from numaplan.mapper import JobPlan

from ..guest.booting import AGAIN, BOOTS
from ..guest.control import GuestError, QemuFaultError
from ..guest.guest import Guest, Outcome
from ..guest.health import Patience
from ..guest.job import Job
from ..guest.kernel import installed_kernel
from ..guest.shape import GuestShape
from ..places import TEMPORARY, open_to_users
from ..runs.counts import parse_counts
from ..runs.results import LabRun, lab_run
from .application import of_application
from .launchers import launcher_environment, make_parts
from .ranks import PlannedRanks, starting_ranks
from .results import ClusterRun, cluster_run
from .switch import Switch


@dataclass(frozen=True)
class ClusterRequest:
    """What to run where: the hosts, and the shape of each one's guest; timeout: seconds, 0 for no limit."""

    argv: Sequence[str]
    hosts: Sequence[Host]
    shapes: Sequence[GuestShape]
    timeout: float = 0.0
    cache: bool = False
    patience: Patience = field(default_factory=Patience)


class ClusterSession:
    """Booted guests on a network of their own; jobs run one after another."""

    def __init__(self, request: ClusterRequest, folder: Path, say: Callable[[str], None]) -> None:
        self.request = request
        self._folder = folder
        self._say = say
        self._parts = make_parts(folder)
        self._switch = Switch([host.name for host in request.hosts])
        self.guests: list[Guest] = []

    @contextmanager
    def booted(self) -> Iterator["ClusterSession"]:
        """All guests boot at once; they are gone at the end, whatever happens."""
        with ExitStack() as stack:
            stack.enter_context(self._switch)
            for shape, cable in zip(self.request.shapes, self._switch.cables, strict=True):
                own = Path(tempfile.mkdtemp(prefix="guest-", dir=self._folder.resolve()))
                guest = Guest(
                    shape, own, cache=self.request.cache, patience=self.request.patience, cable=cable
                )
                self.guests.append(guest)
                stack.push(guest)  # its end is ours from now on
                guest.start()
            for host, guest in zip(self.request.hosts, self.guests, strict=True):
                with _naming(host):
                    guest.wait_until_ready()
            self._say(f"booted in {self.boot_seconds:.1f} s")
            yield self

    @property
    def boot_seconds(self) -> float:
        """Until all guests were ready."""
        return max(guest.boot_seconds for guest in self.guests)

    def run(
        self, plan: JobPlan | None = None, stdin: int = -1, stdout: int = -1, stderr: int = -1
    ) -> ClusterRun:
        """Run the job once, its streams on these descriptors (-1: none); plan: where its ranks are placed."""
        with temporary_folder("run-", self._folder) as folder:
            hosts, argv = self.request.hosts, list(self.request.argv)
            open_to_users(folder)
            environment = launcher_environment(os.environ, self._parts, folder, hosts, plan)
            ranks = None
            if plan is not None:
                argv, program = starting_ranks(plan, argv)
                ranks = PlannedRanks(plan, hosts, program, environment, folder)
            outcomes = self._run(argv, environment, folder, (stdin, stdout, stderr))
            runs = {
                host.name: self._result(host, outcome, outcomes[0], _trace(folder, host))
                for host, outcome in zip(hosts, outcomes, strict=True)
            }
            result = cluster_run(self.request.argv, runs, self._switch.take_traffic(), self.boot_seconds)
            if ranks and plan:
                result.predicted = plan.predicted
                result.applied = ranks.reports(outcomes[0].exit_code)
        return result

    def _run(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        streams: tuple[int, int, int],
    ) -> list[Outcome]:
        """How it ended on each host: the launcher on the first, what serves it on the others."""
        (first, leader), *others = zip(self.request.hosts, self.guests, strict=True)
        place, server = str(Path.cwd()), str(self._parts / "nlab-serve")
        serving = Job(server, [server], environment, place)
        job = Job(find_program(argv), argv, environment, place, self.request.timeout)
        self._switch.take_traffic()
        for host, guest in others:
            with _naming(host):
                guest.begin(serving, stderr=streams[2], trace=_trace(folder, host))

        def check_others() -> None:
            for host, guest in others:
                with _naming(host):
                    guest.check()

        with _naming(first):
            leader.begin(job, *streams, trace=_trace(folder, first))
            outcomes = [leader.finish(job, check_others)]
        for host, guest in others:
            with _naming(host):
                guest.signal(signal.SIGTERM)
                outcomes.append(guest.finish(serving))
        return outcomes

    def _result(self, host: Host, outcome: Outcome, first: Outcome, trace: Path) -> LabRun:
        """A host's; how the job ended, the first one says."""
        machine = host.machine
        counts = parse_counts(outcome.counts, len(machine.cpus), len(machine.nodes))
        ours = counts._replace(counted=of_application(trace, counts))
        left_out = int(counts.accesses.sum() - ours.accesses.sum())
        return lab_run(
            machine,
            ours._replace(excluded=counts.excluded + left_out),
            config="cluster",
            argv=self.request.argv,
            kernel=outcome.numbers,
            exit_code=first.exit_code,
            timed_out=first.late,
            seconds=first.seconds,
            cached=self.request.cache,
        )


def _trace(folder: Path, host: Host) -> Path:
    return folder / f"{host.name}.trace"


@contextmanager
def _naming(host: Host) -> Iterator[None]:
    """What goes wrong says on which host."""
    try:
        yield
    except GuestError as error:
        if error.what.startswith("host "):
            raise
        raise type(error)(f"host {host.name}: {error.what}", error.hint) from error


@contextmanager
def open_cluster(request: ClusterRequest, say: Callable[[str], None]) -> Iterator[ClusterSession]:
    """Check the request, boot its guests, and take them down at the end, whatever happens."""
    find_program(request.argv)
    if not math.isfinite(request.timeout):
        raise UsageError(f"--timeout {request.timeout}: not a number of seconds", "give 0 for no limit")
    if not installed_kernel().network:
        raise MachineLacksError("the lab's kernel was set up without a network", "run 'nlab setup'")
    with swept_folder(TEMPORARY) as folder, ExitStack() as stack:
        cpus = sum(len(shape.machine.cpus) for shape in request.shapes)
        memory = sum(shape.total_mib for shape in request.shapes)
        say(f"booting {len(request.hosts)} hosts, {cpus} cpus, {memory} MiB")
        yield _boot(stack, request, folder, say)


def _boot(
    stack: ExitStack, request: ClusterRequest, folder: Path, say: Callable[[str], None]
) -> ClusterSession:
    """A booted cluster; another in place of one of which a guest fails by a fault of QEMU's."""
    for left in reversed(range(BOOTS)):
        own = Path(tempfile.mkdtemp(prefix="cluster-", dir=folder))
        if not os.getuid():  # users that the program becomes find our parts and write logs
            folder.chmod(0o711)
            own.chmod(0o711)
        try:
            return stack.enter_context(ClusterSession(request, own, say).booted())
        except QemuFaultError:
            if not left:
                raise
            say(AGAIN)
    raise AssertionError("unreachable")
