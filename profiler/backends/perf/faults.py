"""The backend `faults`: every page fault of the program, with its address, by `perf record -e page-faults`.

It needs no hardware sampler and works in virtual machines. A page faults when it is first touched; with the
kernel's NUMA balancing it faults again now and then (hint faults), which then sample who uses which page.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.common import MachineLacksError, UsageError
from numaplan.machine import Machine

from ...perfdata.decode import decode_perf
from ...sample_block import SampleBlock
from ...trace.schema import EVENT_CODE
from ..base import Capability, PerfChoices, Progress, Recording, RecordRequest
from .command import perf_arguments, probe
from .event_plan import NO_PHYSICAL, ring_options
from .kernel_files import ROOT, read_number
from .privileges import CAP_SYS_ADMIN, has_capability, is_privileged, perf_hint
from .session import recording_of, run_perf, shown_command, survey_output, unless_killed

_EVENTS = ("page-faults",)
_OPTIONS = ("-d", "-k", "CLOCK_MONOTONIC")
_PERIOD = 1
_PAGE_BITS = np.uint64(12)
_SORTED_AT_ONCE = 1 << 18
_Pages = NDArray[np.uint64]
_Times = NDArray[np.int64]
_BALANCING = ROOT / "proc/sys/kernel/numa_balancing"


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
        with unless_killed(request, run):
            found = survey_output(output, run.messages)
        recording = recording_of(request, run, found, _PERIOD)
        if hint_faults_live(request.machine):
            return replace(recording, blocks=HintFaults(recording.blocks))
        return recording

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
    return len(machine.nodes) > 1 and (read_number(_BALANCING) or 0) & 1 == 1


def _has_samples(output: Path) -> bool:
    return len(decode_perf(output).samples["time"]) > 0


class HintFaults:
    """Blocks in which a fault on a page that its process has faulted on before is a hint fault.

    Where NUMA balancing is on it is one, but for the few of copied or unmapped pages. The blocks are read
    twice, since they come in no order of time; of each page only the first fault's time is held.
    """

    def __init__(self, blocks: Iterable[SampleBlock]) -> None:
        self._blocks = blocks

    def __iter__(self) -> Iterator[SampleBlock]:
        first = _FirstFaults()
        for block in self._blocks:
            first.add(block)
        for block in self._blocks:
            again = (block.time_ns > first.times(block)) & (block.event == EVENT_CODE["fault"])
            yield replace(block, event=np.where(again, np.uint8(EVENT_CODE["hint_fault"]), block.event))


class _FirstFaults:
    """When each process first faulted on each of its pages."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[_Pages, _Times]] = {}  # by process, in order of pages
        self._new: dict[int, list[tuple[_Pages, _Times]]] = {}

    def add(self, block: SampleBlock) -> None:
        for pid in np.unique(block.pid).tolist():
            own = block.pid == pid
            new = self._new.setdefault(pid, [])
            new.append(_first(block.addr[own] >> _PAGE_BITS, block.time_ns[own]))
            # Seldom enough that sorting what is known again costs no more than sorting what is new.
            if sum(len(pages) for pages, _times in new) > max(_SORTED_AT_ONCE, len(self._of(pid)[0])):
                self._merge(pid)

    def times(self, block: SampleBlock) -> _Times:
        """When the page of each sample of a block that was added had its first fault."""
        found = np.empty(len(block), np.int64)
        for pid in np.unique(block.pid).tolist():
            self._merge(pid)
            own = block.pid == pid
            pages, times = self._of(pid)
            found[own] = times[np.searchsorted(pages, block.addr[own] >> _PAGE_BITS)]
        return found

    def _of(self, pid: int) -> tuple[_Pages, _Times]:
        return self._known.get(pid, (np.empty(0, np.uint64), np.empty(0, np.int64)))

    def _merge(self, pid: int) -> None:
        if new := self._new.pop(pid, None):
            pages, times = zip(self._of(pid), *new, strict=True)
            self._known[pid] = _first(np.concatenate(pages), np.concatenate(times))


def _first(pages: _Pages, times: _Times) -> tuple[_Pages, _Times]:
    """Each page once, in order, with the least of its times."""
    order = np.lexsort((times, pages))
    pages, times = pages[order], times[order]
    chosen = np.ones(len(pages), np.bool_)
    chosen[1:] = pages[1:] != pages[:-1]
    return pages[chosen], times[chosen]
