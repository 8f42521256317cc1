"""The virtual machine's memory sampler agrees with what the same run counted exactly."""

import sys
from pathlib import Path

import numpy as np
import pytest

from numaplan.profiler.perfdata.stream import StreamDecoder
from numaplan.profiler.sampling.samples import LiveSamples, live_samples
from tests.support.guests import SharedGuest, guest_program
from tests.support.programs import PROGRAMS

pytestmark = pytest.mark.lab

SAMPLED = PROGRAMS / "lab" / "sampled.py"
LOCAL_NS, REMOTE_NS = 90, 189  # of distances 10 and 21


def sample(two_nodes: SharedGuest, output: Path, *words: object) -> tuple[LiveSamples, dict[int, list[int]]]:
    """The samples of a run, and its accesses by node, counted, of each thread."""
    result = two_nodes.run(sys.executable, "-I", "-S", SAMPLED, output, *words)
    assert result["exit_code"] == 0
    decoder = StreamDecoder()
    decoder.feed(output.read_bytes())
    piece = decoder.take()
    counted = {thread["tid"]: thread["accesses"] for thread in result["threads"]}
    return live_samples(piece.samples, piece.events, piece.lost), counted


def test_samples_tell_who_touches_what_where(two_nodes: SharedGuest, tmp_path: Path) -> None:
    """Two programs on a cpu each, both with memory of node 0: threads, cpus, writes, latency, numbers."""
    period, accesses = 1009, 30_000_000
    near, far = ([guest_program("known"), cpu, 0, accesses] for cpu in (1, 2))
    samples, counted = sample(two_nodes, tmp_path / "stream", period, 0.01, *near, "--", *far)
    assert (samples.count == period).all()
    assert (np.diff(samples.time_ns[np.argsort(samples.time_ns)]) >= 0).all()
    found, missing = {}, 0.0
    for tid in np.unique(samples.tid).tolist():
        rows = samples.tid == tid
        if rows.sum() * period < accesses / 2:
            continue  # the shell's words before the program
        assert (samples.pid[rows] == tid).all()
        missing += sum(counted[tid]) / period - rows.sum()
        assert abs(samples.is_write[rows].mean() - 0.5) < 0.03
        cpu = int(np.median(samples.cpu[rows]))
        found[cpu] = float(np.mean(samples.latency_ns[rows] == (LOCAL_NS if cpu == 1 else REMOTE_NS)))
        assert abs(found[cpu] - counted[tid][0] / sum(counted[tid])) < 0.02
        pages = np.unique(samples.addr[rows] // np.uint64(4096))
        assert len(pages) > 1000  # of the 1024 that it uses
    assert set(found) == {1, 2}
    assert abs(missing - samples.lost) < 0.01 * len(samples.tid)  # how many find no room is the reader's pace


def test_what_finds_no_room_is_counted(two_nodes: SharedGuest, tmp_path: Path) -> None:
    """Far more samples than the ring holds, taken once at the end: those that are gone are known."""
    period, accesses = 16, 24_000_000
    words = [guest_program("known"), 0, 1, accesses]
    samples, counted = sample(two_nodes, tmp_path / "stream", period, 0, *words)
    assert samples.lost > 100_000
    total = sum(counted[int(np.bincount(samples.tid).argmax())])  # its launcher's, a tenth, are lost, too
    assert 0.98 < (len(samples.tid) + samples.lost) * period / total < 1.2
