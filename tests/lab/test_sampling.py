"""The virtual machine's memory sampler agrees with what the same run counted exactly."""

import sys
from pathlib import Path

import numpy as np
import pytest

from numaplan.profiler.perfdata.stream import StreamDecoder
from numaplan.profiler.sampling.samples import LiveSamples, live_samples
from tests.support.guests import SharedGuest, guest_program
from tests.support.programs import PROGRAMS

pytestmark = [pytest.mark.lab, pytest.mark.slow]

SAMPLED = PROGRAMS / "lab/sampled.py"
LOCAL_NS, REMOTE_NS = 90, 189  # of distances 10 and 21


def sample(
    two_nodes: SharedGuest, output: Path, *words: object
) -> tuple[LiveSamples, dict[int, list[int]], int]:
    """The samples of a run, its accesses by node, counted, of each thread but the one that asks, and all."""
    result = two_nodes.run(sys.executable, "-I", "-S", SAMPLED, output, *words)
    assert result["exit_code"] == 0
    decoder = StreamDecoder()
    decoder.feed(output.read_bytes())
    piece = decoder.take()
    counted = {thread["tid"]: thread["accesses"] for thread in result["threads"] if thread["path"] != "0"}
    everything = sum(result[kind] for kind in ("local", "remote", "unknown", "excluded"))
    return live_samples(piece.samples, piece.events, piece.lost), counted, everything


def test_samples_tell_who_touches_what_where(two_nodes: SharedGuest, tmp_path: Path) -> None:
    """Two programs on a cpu each, both with memory of node 0: threads, cpus, writes, latency, numbers.

    They are run again and again, and each time make fewer samples than a ring has room for: however slowly
    samples are taken, none is lost.
    """
    period, accesses, times = 1009, 3_000_000, 4
    near, far = ([guest_program("known"), cpu, 0, accesses] for cpu in (1, 2))
    samples, counted, _ = sample(two_nodes, tmp_path / "stream", period, times, *near, "--", *far)
    assert samples.lost == 0
    assert (samples.count == period).all()
    assert len(counted) == 2 * times
    for cpu, latency in ((1, LOCAL_NS), (2, REMOTE_NS)):
        here = [tid for tid in counted if np.median(samples.cpu[samples.tid == tid]) == cpu]
        rows = np.isin(samples.tid, here)
        assert len(here) == times
        assert (samples.pid[rows] == samples.tid[rows]).all()
        by_node = np.sum([counted[tid] for tid in here], axis=0)
        assert abs(rows.sum() * period / by_node.sum() - 1) < 0.01
        assert abs(samples.is_write[rows].mean() - 0.5) < 0.03
        assert abs((samples.latency_ns[rows] == latency).mean() - by_node[0] / by_node.sum()) < 0.02
        pages = np.unique(samples.addr[rows] // np.uint64(4096))
        assert len(pages) > 1000  # of the 1024 that each uses


def test_what_finds_no_room_is_counted(two_nodes: SharedGuest, tmp_path: Path) -> None:
    """Far more samples than the ring holds, taken once at the end: those that are gone are known."""
    period, accesses = 16, 12_000_000
    words = [guest_program("known"), 0, 1, accesses]
    samples, counted, everything = sample(two_nodes, tmp_path / "stream", period, 0, *words)
    assert samples.lost > 100_000
    total = sum(counted[int(np.bincount(samples.tid).argmax())])
    # Lost are also those of its launcher, and of the agent, who works the more the longer it lasts.
    assert 0.98 * total < (len(samples.tid) + samples.lost) * period < 1.02 * everything
