"""The backend `faults`: every page fault of the program, with its address, by `perf record -e page-faults`.

It needs no hardware sampler and works in virtual machines. A page faults when it is first touched; with the
kernel's NUMA balancing it faults again now and then (hint faults), which then sample who uses which page.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.common import MachineLacksError, UsageError
from numaplan.machine import Machine

from ...perfdata.accesses.conversion import Converted
from ...perfdata.decoded import decode_perf
from ...recorded import Recording
from ...trace.schema import EVENT_CODE
from ..base import Capability, PerfChoices, Progress, RecordRequest
from .command import perf_arguments, probe
from .event_plan import NO_PHYSICAL, ring_options
from .privileges import CAP_SYS_ADMIN, has_capability, is_privileged, perf_hint
from .session import decode_output, own_accesses, recording_of, run_perf, shown_command

_EVENTS = ("page-faults",)
_OPTIONS = ("-d", "-k", "CLOCK_MONOTONIC")
_PERIOD = 1
_PAGE_BITS = 12
_BALANCING = Path("/proc/sys/kernel/numa_balancing")


class FaultsBackend:
    """Page faults, and NUMA hint faults where the kernel makes them."""

    name = "faults"

    def available(self, machine: Machine) -> Capability:
        """Whether perf can record page faults here; records `true` to find out (0.2 s)."""
        try:
            problem = probe(perf_arguments(_EVENTS, _OPTIONS, _PERIOD, PerfChoices()), _has_samples)
        except MachineLacksError as error:
            return Capability(False, error.what, error.hint)
        if problem:
            return Capability(False, f"perf cannot record page faults: {problem}", perf_hint())
        if hint_faults_live(machine):
            return Capability(True, "page faults and NUMA hint faults")
        return Capability(True, "page faults: first touches only (no NUMA hint faults on this machine)")

    def command(self, request: RecordRequest) -> list[str]:
        """A command line that records the same; raises what record() would raise before it starts."""
        return shown_command(request, self._arguments(request))

    def record(self, request: RecordRequest, progress: Progress) -> Recording:
        """See Backend.record."""
        output = request.workdir / "faults.data"
        run = run_perf(request, self._arguments(request), output, progress)
        progress("reading the recording", -1.0)
        converted = own_accesses(decode_output(output, run.messages), run, only_family=False)
        if hint_faults_live(request.machine):
            converted = _with_hint_faults(converted)
        return recording_of(request, run, converted, _PERIOD)

    def _arguments(self, request: RecordRequest) -> list[str]:
        if request.options:
            raise UsageError(f"backend faults has no setting {next(iter(request.options))!r}", "leave it out")
        if request.choices.phys and not has_capability(CAP_SYS_ADMIN):
            raise MachineLacksError(*NO_PHYSICAL)
        phys = ("--phys-data",) if request.choices.phys else ()
        options = (*_OPTIONS, *phys, *ring_options(is_privileged()))
        return perf_arguments(_EVENTS, options, _PERIOD, request.choices)


def hint_faults_live(machine: Machine) -> bool:
    """Whether the kernel makes NUMA hint faults: several nodes, and its balancing is on."""
    try:
        return len(machine.nodes) > 1 and int(_BALANCING.read_text()) & 1 == 1
    except (OSError, ValueError):
        return False


def _has_samples(output: Path) -> bool:
    return len(decode_perf(output).samples["time"]) > 0


def _with_hint_faults(converted: Converted) -> Converted:
    samples, rows = converted.decoded.samples, converted.rows
    pages = samples["addr"][rows] >> np.uint64(_PAGE_BITS)
    again = repeated(samples["pid"][rows], pages, samples["time"][rows])
    again &= converted.codes == EVENT_CODE["fault"]
    return replace(
        converted, codes=np.where(again, EVENT_CODE["hint_fault"], converted.codes).astype(np.uint8)
    )


def repeated(pid: NDArray[np.int64], page: NDArray[np.uint64], time: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which faults hit a page that their process has faulted on before.

    Where NUMA balancing is on these are its hint faults, but for the few of copied or unmapped pages.
    """
    order = np.lexsort((time, page, pid))
    same = (pid[order][1:] == pid[order][:-1]) & (page[order][1:] == page[order][:-1])
    flags = np.zeros(len(order), dtype=np.bool_)
    flags[order[1:]] = same
    return flags
