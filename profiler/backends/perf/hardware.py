"""The backends `pebs` (Intel), `ibs` (AMD) and `spe` (ARM): the hardware's own samples of memory accesses."""

from pathlib import Path

from numaplan.common import NumaplanError
from numaplan.machine import Machine

from ...perfdata.accesses.blocks import Accesses
from ..base import Capability, PerfChoices, Progress, Recording, RecordRequest
from .command import perf_arguments, probe
from .event_plan import EventPlan, plan_events
from .hardware_samplers import read_hardware
from .hardware_trace import synthesise
from .kernel_files import ROOT
from .running import PerfRun
from .session import recording_of, run_perf, shown_command, survey_output, unless_killed

_DEFAULT_PERIOD = 1000


class HardwareBackend:
    """The sampler `pebs`, `ibs` or `spe` through perf; root: where sysfs and procfs are read from."""

    def __init__(self, name: str, root: Path = ROOT) -> None:
        self.name = name
        self._root = root

    def available(self, machine: Machine) -> Capability:
        """Whether the sampler is there and perf can use it; here `true` is recorded to find out."""
        del machine
        try:
            plan = plan_events(self.name, read_hardware(self._root), _DEFAULT_PERIOD, PerfChoices(), {})
            wide = ["-a"] if plan.machine_wide else []
            here = self._root == ROOT
            problem = probe([*_arguments(plan, PerfChoices()), *wide]) if here else ""
        except NumaplanError as error:
            return Capability(False, error.what.removeprefix(f"backend {self.name}: "), error.hint)
        if problem:
            return Capability(False, f"perf cannot record {plan.events[0]}: {problem}", "see 'nprof doctor'")
        return Capability(True, " ".join(f"-e {event}" for event in plan.events))

    def command(self, request: RecordRequest) -> list[str]:
        """A command line that records the same; raises what record() would raise before it starts."""
        plan = self._request_plan(request)
        return shown_command(request, _arguments(plan, request.choices), plan.machine_wide)

    def record(self, request: RecordRequest, progress: Progress) -> Recording:
        """See Backend.record."""
        plan = self._request_plan(request)
        output = request.workdir / f"{self.name}.data"
        arguments = _arguments(plan, request.choices)
        run = run_perf(request, arguments, output, progress, plan.machine_wide)
        progress("reading the recording", -1.0)
        return self.read(request, plan, run, output)

    def read(self, request: RecordRequest, plan: EventPlan, run: PerfRun, output: Path) -> Recording:
        """What the recording in perf's file brought: record() without the running."""
        only_family = plan.machine_wide and not request.choices.all_cpus
        with unless_killed(request, run):
            found = self._survey(output, run)
        return recording_of(request, run, found, plan.period, plan.notes, only_family)

    def _survey(self, output: Path, run: PerfRun) -> Accesses:
        if self.name != "spe":
            return survey_output(output, run.messages)
        # perf writes SPE's packets as they are, and turns them into samples by its own clock.
        found = survey_output(synthesise(output, output.parent / "samples.data"), run.messages)
        return _on_monotonic_clock(found, run)

    def _request_plan(self, request: RecordRequest) -> EventPlan:
        hardware = read_hardware(self._root)
        return plan_events(self.name, hardware, request.period, request.choices, request.options)


def _on_monotonic_clock(found: Accesses, run: PerfRun) -> Accesses:
    """Shift perf's clock to CLOCK_MONOTONIC: we let the program go when it did its exec, to some 0.1 ms.

    Without an exec the first access is taken for the start of the recording.
    """
    execs = [time for time, pid in found.facts.execs if pid == run.pid]
    return found.moved(run.start_ns - min(execs, default=found.start or run.start_ns))


def _arguments(plan: EventPlan, choices: PerfChoices) -> list[str]:
    return perf_arguments(plan.events, plan.options, plan.period, choices)
