"""The backend `faults`: every page fault of the program, with its address, by `perf record -e page-faults`.

It needs no hardware sampler and works in virtual machines. A page faults when it is first touched; with the
kernel's NUMA balancing it faults again now and then (hint faults), which then sample who uses which page.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.common import MachineLacksError, NumaplanError
from numaplan.profiler.backends.base import (
    Capability,
    Progress,
    Recording,
    RecordRequest,
    SampleBlock,
    SeenThread,
)
from numaplan.profiler.backends.perf_command import INSTALL, INTERRUPTED, find_perf, run_recorded
from numaplan.profiler.machine import Machine
from numaplan.profiler.perfdata import Decoded, decode_perf
from numaplan.profiler.privileges import is_privileged, perf_mend
from numaplan.profiler.trace.schema import EVENT_CODE, LEVEL_CODE

_OPTIONS = ("-B", "-N", "-e", "page-faults", "-c", "1", "-d", "-k", "CLOCK_MONOTONIC", "--sample-cpu")
_RING_PAGES = "1024"  # per cpu; more than an unprivileged user may lock
_EVENT = "page-faults"
_BLOCK = 1 << 20
_PROBE_SECONDS = 20
_PAGE_BITS = 12
_BALANCING = Path("/proc/sys/kernel/numa_balancing")


class FaultsBackend:
    """Page faults, and NUMA hint faults where the kernel makes them."""

    name = "faults"
    summary = "page faults by perf: first touches, and hint faults with NUMA balancing; no hardware needed"

    def available(self, machine: Machine) -> Capability:
        """Whether perf can record page faults here; records `true` to find out (0.2 s)."""
        try:
            perf = find_perf()
        except MachineLacksError as error:
            return Capability(False, error.what, INSTALL)
        problem = _probe(perf)
        if problem:
            return Capability(False, f"perf cannot record page faults: {problem}", perf_mend())
        if hint_faults_live(machine):
            return Capability(True, "page faults and NUMA hint faults")
        return Capability(True, "page faults: first touches only (no NUMA hint faults on this machine)")

    def record(self, request: RecordRequest, progress: Progress) -> Recording:
        """See Backend.record."""
        output = request.workdir / "faults.data"
        progress("recording page faults", -1.0)
        ring = ("-m", _RING_PAGES) if is_privileged() else ()
        run = run_recorded(request.argv, request.environment, (*_OPTIONS, *ring), output)
        progress("reading the recording", -1.0)
        decoded = _decode(output, run.messages)
        if run.exit_code == INTERRUPTED and run.pid not in {pid for _time, pid in decoded.execs}:
            raise KeyboardInterrupt  # it came before the program's start
        kept = _own_samples(decoded, run.pid)
        notes = {"perf": str(decoded.header.get("version", "")), "perf_events": _EVENT}
        if run.messages or decoded.warnings:
            notes["warnings"] = "; ".join(filter(None, (run.messages, *decoded.warnings)))
        return Recording(
            exit_code=run.exit_code,
            start_ns=run.start_ns,
            blocks=_blocks(decoded, kept, request.machine),
            threads=[SeenThread(t.pid, t.tid, t.name, t.parent_tid, t.start, t.end) for t in decoded.threads],
            losses=_losses(decoded, run.start_ns),
            notes=notes,
        )


def hint_faults_live(machine: Machine) -> bool:
    """Whether the kernel makes NUMA hint faults: several nodes, and its balancing is on."""
    try:
        return len(machine.nodes) > 1 and int(_BALANCING.read_text()) & 1 == 1
    except (OSError, ValueError):
        return False


def _probe(perf: str) -> str:
    """What goes wrong when `true` is recorded; empty when it works."""
    program = shutil.which("true")
    if program is None:
        return "no program 'true' to try it on"
    with tempfile.TemporaryDirectory(prefix="numaplan-") as folder:
        output = Path(folder) / "probe.data"
        command = [perf, "record", "-q", *_OPTIONS, "-o", str(output), "--", program]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=False)
            if done.returncode == 0 and len(decode_perf(output).samples["time"]):
                return ""
        except (OSError, subprocess.TimeoutExpired, NumaplanError) as error:
            return str(error)
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in lines if line.strip()), "it records nothing")


def _decode(output: Path, messages: str) -> Decoded:
    try:
        return decode_perf(output)
    except NumaplanError as error:
        raise MachineLacksError(
            f"perf recorded nothing that can be read: {messages or error.what}", "see 'nprof doctor'"
        ) from error


def _own_samples(decoded: Decoded, pid: int) -> NDArray[np.intp]:
    """Rows of page faults, without those of our own child before it became the program."""
    samples = decoded.samples
    events = [index for index, name in enumerate(decoded.events) if name.split(":")[0] == _EVENT]
    started = min((time for time, who in decoded.execs if who == pid), default=-1)
    ours = (samples["pid"] != pid) | (samples["time"] >= started)
    rows: NDArray[np.intp] = np.flatnonzero(ours & np.isin(samples["event"], events))
    return rows


def _blocks(decoded: Decoded, rows: NDArray[np.intp], machine: Machine) -> Iterator[SampleBlock]:
    samples = decoded.samples
    codes = np.full(len(rows), EVENT_CODE["fault"], dtype=np.uint8)
    if hint_faults_live(machine):
        again = repeated(
            samples["pid"][rows], samples["addr"][rows] >> np.uint64(_PAGE_BITS), samples["time"][rows]
        )
        codes[again] = EVENT_CODE["hint_fault"]
    node_of = _node_table(machine)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        cpu = samples["cpu"][block].astype(np.int16)
        yield SampleBlock(
            time_ns=samples["time"][block],
            pid=samples["pid"][block].astype(np.int32),
            tid=samples["tid"][block].astype(np.int32),
            cpu=cpu,
            node=node_of[cpu],
            addr=samples["addr"][block],
            phys_addr=np.zeros(len(block), dtype=np.uint64),
            ip=samples["ip"][block],
            event=codes[start : start + _BLOCK],
            is_write=np.zeros(len(block), dtype=np.bool_),
            level=np.full(len(block), LEVEL_CODE["unknown"], dtype=np.uint8),
            latency=np.full(len(block), -1, dtype=np.int32),
        )


def _node_table(machine: Machine) -> NDArray[np.int16]:
    """Node id by cpu; cpus beyond the machine's are -1 (the last entries also serve negative indices)."""
    table = np.full(1 << 16, -1, dtype=np.int16)
    for cpu, node in machine.node_of_cpu.items():
        table[cpu] = node
    return table


def repeated(pid: NDArray[np.int64], page: NDArray[np.uint64], time: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which faults hit a page that their process has faulted on before.

    Where NUMA balancing is on these are its hint faults, but for the few of copied or unmapped pages.
    """
    order = np.lexsort((time, page, pid))
    same = (pid[order][1:] == pid[order][:-1]) & (page[order][1:] == page[order][:-1])
    flags = np.zeros(len(order), dtype=np.bool_)
    flags[order[1:]] = same
    return flags


def _losses(decoded: Decoded, start_ns: int) -> list[tuple[int, int]]:
    """Where events were lost; what only the totals know of is put at the start."""
    losses = [(max(time, start_ns), events) for time, events in decoded.losses]
    missing = decoded.lost - sum(events for _time, events in losses)
    return [*losses, (start_ns, missing)] if missing > 0 else losses
