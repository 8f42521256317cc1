"""The backends `pebs` (Intel), `ibs` (AMD) and `spe` (ARM): the hardware's own samples of memory accesses."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from numaplan.common import NumaplanError
from numaplan.machine import Machine

from ...perfdata.decoded import Decoded
from ...recorded import Recording
from ..base import Capability, PerfChoices, Progress, RecordRequest
from .command import perf_arguments, probe
from .event_plan import EventPlan, plan_events
from .hardware_samplers import read_hardware
from .hardware_trace import synthesise
from .running import PerfRun
from .session import decode_output, own_accesses, recording_of, run_perf, shown_command

_DEFAULT_PERIOD = 1000


class HardwareBackend:
    """The sampler `pebs`, `ibs` or `spe` through perf; root: where sysfs and procfs are read from."""

    def __init__(self, name: str, root: Path = Path("/")) -> None:
        self.name = name
        self._root = root

    def available(self, machine: Machine) -> Capability:
        """Whether the sampler is there and perf can use it; here `true` is recorded to find out."""
        del machine
        try:
            plan = plan_events(self.name, read_hardware(self._root), _DEFAULT_PERIOD, PerfChoices(), {})
            wide = ["-a"] if plan.machine_wide else []
            here = self._root == Path("/")
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
        return self.recorded(request, plan, run, output)

    def recorded(self, request: RecordRequest, plan: EventPlan, run: PerfRun, output: Path) -> Recording:
        """What perf's file says; record() without the running."""
        decoded = self._decode(output, run)
        only_family = plan.machine_wide and not request.choices.all_cpus
        return recording_of(request, run, own_accesses(decoded, run, only_family), plan.period, plan.notes)

    def _decode(self, output: Path, run: PerfRun) -> Decoded:
        if self.name != "spe":
            return decode_output(output, run.messages)
        # perf writes SPE's packets as they are, and turns them into samples by its own clock.
        decoded = decode_output(synthesise(output, output.parent / "samples.data"), run.messages)
        return _on_monotonic_clock(decoded, run)

    def _request_plan(self, request: RecordRequest) -> EventPlan:
        hardware = read_hardware(self._root)
        return plan_events(self.name, hardware, request.period, request.choices, request.options)


def _on_monotonic_clock(decoded: Decoded, run: PerfRun) -> Decoded:
    """Shift perf's clock to CLOCK_MONOTONIC: we let the program go when it did its exec, to some 0.1 ms.

    Without an exec the first record is taken for the start of the recording.
    """
    execs = [time for time, pid in decoded.execs if pid == run.pid]
    times = decoded.samples["time"]
    positive = times[times > 0]
    anchor = min(execs, default=int(positive.min()) if len(positive) else run.start_ns)
    shift = run.start_ns - anchor
    moved = np.where(times > 0, times + shift, times)

    def later(time: int) -> int:
        return time + shift if time > 0 else time

    return replace(
        decoded,
        samples={**decoded.samples, "time": moved},
        maps=tuple(replace(one, time=later(one.time)) for one in decoded.maps),
        losses=tuple((later(time), events) for time, events in decoded.losses),
        execs=tuple((later(time), pid) for time, pid in decoded.execs),
        recorded_threads=tuple(
            replace(one, start=later(one.start), end=later(one.end)) for one in decoded.recorded_threads
        ),
    )


def _arguments(plan: EventPlan, choices: PerfChoices) -> list[str]:
    return perf_arguments(plan.events, plan.options, plan.period, choices)
