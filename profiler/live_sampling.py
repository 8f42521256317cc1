"""Sample running threads' memory accesses as they happen: `perf record -o -`, decoded piece by piece."""

import os
import select
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.common import MachineLacksError
from numaplan.profiler.backends.base import PerfChoices
from numaplan.profiler.backends.event_plan import ring_options
from numaplan.profiler.backends.perf_command import recording_perf
from numaplan.profiler.backends.perf_session import perf_arguments
from numaplan.profiler.perfdata import PerfDataError, StreamDecoder
from numaplan.profiler.perfdata.conversion import event_codes
from numaplan.profiler.perfdata.data_source import is_store, levels
from numaplan.profiler.privileges import is_privileged
from numaplan.profiler.trace.schema import EVENT_CODE, LEVEL_CODE

INSTRUCTIONS_PERIOD = 10_000_019
_INSTRUCTIONS = f"instructions/period={INSTRUCTIONS_PERIOD}/u"
_USER_END = np.uint64(1 << 63)
_NONE = 255
_MEND = "see 'nprof doctor'"
_ANSWER_SECONDS = 10.0
_SETTLE_SECONDS = 0.05
_MOST_PENDING = 256 << 20  # bytes between two calls of take(); more is dropped and counted as one loss
_MISSED = [LEVEL_CODE[name] for name in ("local_dram", "remote_dram", "remote_cache", "pmem", "cxl")]


@dataclass(frozen=True)
class LiveEvents:
    """What is sampled: the backend's name, perf's events and options, its period, why this one; machine_wide:
    the sampler cannot be bound to threads.
    """

    backend: str
    events: tuple[str, ...]
    options: tuple[str, ...]
    period: int
    why: str
    machine_wide: bool = False


@dataclass(frozen=True)
class LiveSamples:
    """What was seen since the last call, equally long arrays in the order perf wrote them.

    time_ns: CLOCK_MONOTONIC; count: accesses that a sample stands for (its period); latency: cycles, -1
    unknown; missed: served by memory or another node's cache; instructions: (tid, instructions) pairs, where
    they are counted; lost: events that perf lost.
    """

    time_ns: NDArray[np.int64]
    pid: NDArray[np.int64]
    tid: NDArray[np.int64]
    cpu: NDArray[np.int64]
    addr: NDArray[np.uint64]
    event: NDArray[np.uint8]
    is_write: NDArray[np.bool_]
    latency: NDArray[np.int64]
    missed: NDArray[np.bool_]
    count: NDArray[np.float64]
    instructions: tuple[tuple[int, float], ...]
    lost: int


def live_events(backend: str, period: int) -> LiveEvents:
    """What to sample with a backend: `pebs` or `ibs`, `faults`, or `auto`, the first that works here.

    Raises MachineLacksError when it does not work here (spe: its packets are decoded only afterwards).
    """
    if backend == "auto":
        for name in ("pebs", "ibs"):
            with suppress(MachineLacksError):
                return live_events(name, period)
        return live_events("faults", period)
    if backend == "faults":
        recording_perf()
        options = ("-d", "-k", "CLOCK_MONOTONIC", *ring_options(is_privileged()))
        return LiveEvents("faults", ("page-faults",), options, 1, "page faults and NUMA hint faults")
    if backend not in ("pebs", "ibs"):
        raise MachineLacksError(f"backend {backend} cannot sample live", "take pebs, ibs or faults")
    return _hardware_events(backend, period)


def _hardware_events(backend: str, period: int) -> LiveEvents:
    from numaplan.profiler.backends.event_plan import plan_events
    from numaplan.profiler.backends.hardware import in_tree
    from numaplan.profiler.machine import Machine
    from numaplan.profiler.sampler_hardware import read_hardware

    root = Path("/")
    capability = in_tree(backend, root).available(Machine.load("local"))
    if not capability.ok:
        raise MachineLacksError(f"backend {backend}: {capability.why}", capability.mend or _MEND)
    plan = plan_events(backend, read_hardware(root), period, PerfChoices(), {})
    return LiveEvents(
        backend, (*plan.events, _INSTRUCTIONS), plan.options, plan.period, capability.why, plan.machine_wide
    )


def no_samples() -> LiveSamples:
    """Nothing was seen."""
    return _live_samples(StreamDecoder().take().samples, (), 0)


class LiveSampler:
    """perf on some processes and all that they start; `take` gives what came since it was last called.

    Started on our own process, it sees every thread of what we start afterwards from its first instruction.
    """

    def __init__(self, what: LiveEvents, pids: Sequence[int]) -> None:
        """Start perf and return once it counts; raises MachineLacksError with its words when it does not."""
        self.what = what
        self._decoder = StreamDecoder()
        self._lock = threading.Lock()
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._dropped = 0
        self.problem = ""
        command_out, self._commands = os.pipe()
        self._answers, answer_in = os.pipe()
        arguments = perf_arguments(what.events, what.options, what.period, PerfChoices())
        target = ["-a"] if what.machine_wide else ["-p", ",".join(map(str, pids))]
        control = ["-D", "-1", f"--control=fd:{command_out},{answer_in}"]
        self._log = os.memfd_create("perf-messages")
        try:
            self._perf = subprocess.Popen(
                [recording_perf(), "record", "-q", *arguments, "-o", "-", *control, *target],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log,
                env={**os.environ, "LC_ALL": "C", "LD_PRELOAD": ""}, pass_fds=(command_out, answer_in),
                process_group=0,  # Ctrl-C is for the program
            )  # fmt: skip
        finally:
            os.close(command_out)
            os.close(answer_in)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._command("enable", None):
            self._perf.wait()
            words = self._last_words() or "it ended at once"
            self.close()
            raise MachineLacksError(f"perf cannot watch: {words}", _MEND)

    @property
    def alive(self) -> bool:
        """Whether perf still runs."""
        return self._perf.poll() is None

    def take(self) -> LiveSamples:
        """The samples since the last call; raises MachineLacksError once perf has died or talks nonsense."""
        # perf writes out its buffers when it is spoken to; else only when they are half full.
        if not self._command("enable", _ANSWER_SECONDS):
            raise MachineLacksError(f"perf ended: {self._last_words() or 'without a word'}", _MEND)
        time.sleep(_SETTLE_SECONDS)
        with self._lock:
            data, dropped = b"".join(self._pieces), self._dropped
            self._pieces, self._waiting, self._dropped = [], 0, 0
        try:
            self._decoder.feed(data)
            piece = self._decoder.take()
        except PerfDataError as error:
            raise MachineLacksError(f"perf's samples cannot be read: {error.what}", _MEND) from error
        return _live_samples(piece.samples, piece.events, piece.lost + dropped)

    def close(self) -> None:
        """End perf; what it has not given yet is gone."""
        if self._perf.poll() is None:
            self._perf.terminate()
            try:
                self._perf.wait(_ANSWER_SECONDS)
            except subprocess.TimeoutExpired:
                self._perf.kill()
                self._perf.wait()
        self._reader.join(_ANSWER_SECONDS)
        if self._perf.stdout:
            self._perf.stdout.close()
        for fd in (self._commands, self._answers, self._log):
            with suppress(OSError):
                os.close(fd)

    def _read(self) -> None:
        """Take perf's output off its hands at once: a full pipe would make it lose samples."""
        assert self._perf.stdout is not None
        fd = self._perf.stdout.fileno()
        with suppress(OSError):
            while data := os.read(fd, 1 << 18):
                with self._lock:
                    if self._waiting + len(data) > _MOST_PENDING:
                        # Records would be cut: stop here, and let take() see that perf has ended.
                        self._dropped += 1
                        self._perf.kill()
                        return
                    self._pieces.append(data)
                    self._waiting += len(data)

    def _command(self, word: str, seconds: float | None) -> bool:
        """Tell perf something and wait for its answer; False when it is gone or does not answer."""
        try:
            os.write(self._commands, f"{word}\n".encode())
            ready, _, _ = select.select([self._answers], [], [], seconds)
            return bool(ready) and os.read(self._answers, 64).startswith(b"ack")
        except (OSError, ValueError):
            return False

    def _last_words(self) -> str:
        with suppress(OSError):
            lines = os.pread(self._log, 4096, 0).decode("utf-8", "replace").split("\n")
            return " ".join(line.strip() for line in lines if line.strip() and line[0] != "[")[:300]
        return ""


def _live_samples(samples: dict[str, NDArray[Any]], events: Sequence[str], lost: int) -> LiveSamples:
    kinds = event_codes(events) if events else np.empty(0, dtype=np.uint8)
    code = kinds[samples["event"]] if len(kinds) else np.empty(0, dtype=np.uint8)
    rows = np.flatnonzero(
        (code != _NONE) & (samples["addr"].astype(np.uint64) < _USER_END) & (samples["addr"] != 0)
    )
    source = samples["data_src"][rows].astype(np.uint64)
    weight = samples["weight"][rows].astype(np.int64)
    level = levels(source)
    period = samples["period"][rows].astype(np.float64)
    kept = code[rows]
    return LiveSamples(
        time_ns=samples["time"][rows],
        pid=samples["pid"][rows],
        tid=samples["tid"][rows],
        cpu=samples["cpu"][rows],
        addr=samples["addr"][rows].astype(np.uint64),
        event=kept,
        is_write=(kept == EVENT_CODE["store"]) | is_store(source),
        latency=np.where(weight > 0, np.minimum(weight, 1 << 31), -1),
        missed=np.isin(level, _MISSED),
        count=np.where(period > 0, period, 1.0),
        instructions=_instructions(samples, events),
        lost=lost,
    )


def _instructions(samples: dict[str, NDArray[Any]], events: Sequence[str]) -> tuple[tuple[int, float], ...]:
    """Instructions by tid, where they are sampled."""
    ours = np.array([name.startswith("instructions") for name in events], dtype=np.bool_)
    if not ours.any() or not len(samples["event"]):
        return ()
    rows = np.flatnonzero(ours[samples["event"]])
    tids, counts = np.unique(samples["tid"][rows], return_counts=True)
    return tuple(zip(tids.tolist(), (counts * float(INSTRUCTIONS_PERIOD)).tolist(), strict=True))
