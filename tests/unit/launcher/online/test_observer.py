"""From samples to an observation, on threads of our own."""

import os
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from numaplan.launcher.online.bindings import Bindings
from numaplan.launcher.online.observer import Observer
from numaplan.launcher.process import page_moves as kernel
from numaplan.mapper.online.observation import MachineView
from numaplan.profiler import Machine
from numaplan.profiler.sampling.samples import LiveSamples, no_samples

PAGE = kernel.PAGE_BYTES
KEPT_S = 3600.0  # longer than any test may be held up


def samples(pages: list[int], cpu: int, latency: float) -> LiveSamples:
    """This thread's loads of these pages just now, each standing for ten."""
    count = len(pages)
    ours = np.full(count, os.getpid()), np.full(count, threading.get_native_id())
    return replace(
        no_samples(),
        time_ns=np.full(count, int(1e9 * time.monotonic())),
        pid=ours[0], tid=ours[1], cpu=np.full(count, cpu),
        addr=np.array(pages, dtype=np.uint64) * np.uint64(PAGE),
        event=np.zeros(count, dtype=np.uint8), is_write=np.zeros(count, dtype=np.bool_),
        latency_ns=np.full(count, latency), missed=np.ones(count, dtype=np.bool_), count=np.full(count, 10.0),
    )  # fmt: skip


@pytest.fixture
def view() -> MachineView:
    """Two nodes, of which the first has all cpus that this process may use, the second one more."""
    here = MachineView.of(Machine.load("2x2"))
    cpus = np.array([*sorted(os.sched_getaffinity(0)), 1 << 12])
    return replace(here, cpu_ids=cpus, cpu_node=(np.arange(len(cpus)) == len(cpus) - 1).astype(np.int64))


def places(monkeypatch: pytest.MonkeyPatch, known: dict[int, int]) -> None:
    """What the kernel says of pages; of others, that they are not there."""

    def page_nodes(_pid: int, pages: np.ndarray) -> np.ndarray:
        return np.array([known.get(page, -1) for page in pages.tolist()], dtype=np.int64)

    monkeypatch.setattr(kernel, "page_nodes", page_nodes)


def test_accesses_count_for_where_pages_are(view: MachineView, monkeypatch: pytest.MonkeyPatch) -> None:
    """By node of the memory, for this interval alone."""
    observer, cpu = Observer(view, Bindings(), KEPT_S), int(view.cpu_ids[0])
    places(monkeypatch, {100: 0, 101: 1})
    observer.observe(samples([100] * 7, cpu, 90.0), [os.getpid()])
    seen = observer.observe(samples([100, 101, 101, 102], cpu, 90.0), [os.getpid()]).observation
    row = int(np.flatnonzero(seen.threads.tid == threading.get_native_id())[0])
    assert seen.threads.accesses[row].tolist() == [10.0, 20.0]
    assert seen.pages.number.tolist() == [100, 101, 102]
    assert seen.touches.accesses[seen.touches.page == 0].sum() > 60.0  # those of before still count for pages


def test_pages_that_await_a_hint_fault_are_where_they_were(
    view: MachineView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some kernels say of them that they are not there."""
    observer, cpu = Observer(view, Bindings(), KEPT_S), int(view.cpu_ids[0])
    found = []
    for known in ({100: 1, 101: 0}, {101: 0}, {}, {100: 0}):
        places(monkeypatch, known)
        interval = observer.observe(samples([100, 101, 102], cpu, 90.0), [os.getpid()])
        found.append(interval.observation.pages.node.tolist())
        assert interval.page_nodes.tolist() == found[-1]
    assert found == [[1, 0, -1], [1, 0, -1], [1, 0, -1], [0, 0, -1]]


def test_addresses_that_no_memory_has_are_left_out(
    view: MachineView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wild pointers, and those with a tag in their upper bits."""
    observer, cpu = Observer(view, Bindings(), KEPT_S), int(view.cpu_ids[0])
    places(monkeypatch, {100: 1})
    seen = observer.observe(samples([100, 100 | 1 << 44, 1 << 40], cpu, 90.0), [os.getpid()]).observation
    assert seen.pages.number.tolist() == [100]


@pytest.mark.parametrize("timed", [True, False])
def test_latencies_that_know_no_load_are_distances(
    view: MachineView, monkeypatch: pytest.MonkeyPatch, timed: bool
) -> None:
    """A sampler that gives them is believed the node alone."""
    places(monkeypatch, {100: 1})
    observer = Observer(view, Bindings(), KEPT_S, timed=timed)
    seen = observer.observe(samples([100], int(view.cpu_ids[0]), 500.0), [os.getpid()]).observation
    assert np.isnan(seen.touches.latency_ns).tolist() == [not timed]
    assert seen.latency_or_distance.tolist() == pytest.approx([500.0 if timed else view.latency_ns[0, 1]])


def test_threads_of_a_process_with_the_cpus_of_one_node_are_not_to_be_moved(
    view: MachineView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy would send their pages to another node, to which they cannot go."""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        pytest.skip("needs two cpus")
    places(monkeypatch, {})
    wider = replace(view, cpu_ids=np.array(mine[:2]), cpu_node=np.array([0, 1]))
    for machine, movable in ((view, False), (wider, True)):
        observer = Observer(machine, Bindings(), KEPT_S)
        threads = observer.observe(no_samples(), [os.getpid()]).observation.threads
        assert threads.movable.tolist() == [movable] * threads.count


def test_cpus_on_which_no_process_may_run_are_closed(view: MachineView) -> None:
    """A process in a cpuset, or under taskset: no policy is to send anything elsewhere."""
    mine = sorted(os.sched_getaffinity(0))
    observer = Observer(view, Bindings(), KEPT_S)
    machine = observer.observe(no_samples(), [os.getpid()]).observation.machine
    assert machine.closed == frozenset({1 << 12})
    assert machine.seats.tolist() == [len(mine), 0] and machine.cpu_nodes.tolist() == [0]
    assert observer.observe(no_samples(), [os.getpid()]).observation.machine is machine
    gone = observer.observe(no_samples(), []).observation.machine
    assert not gone.closed
