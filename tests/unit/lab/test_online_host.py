"""The loop's view of a guest from the host: its options, its samples, the conversation with the agent."""

import socket
import struct
import threading
from pathlib import Path

import numpy as np
import pytest

from numaplan.common import MachineLacksError, UsageError
from numaplan.lab.online.attending import read_online
from numaplan.lab.online.link import Link
from numaplan.lab.online.rings import SAMPLE, Rings
from numaplan.lab.online.system import ACCESSES_A_SECOND, PERIOD, GuestSystem

VCPUS, RECORDS, FIRST = 2, 64, 4096


def test_a_policy_with_options_of_nlaunch() -> None:
    command = read_online("nimar --set T=2 --budget moves=3 --plan plan.json")
    assert (command.online, command.plan) == ("nimar", "plan.json")
    options = command.online_options()
    assert (options.settings, options.moves) == (("T=2",), 3.0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("numaplan --journal missing/x", "no folder missing"),
        ("numaplan --save missing/x", "no folder missing"),
        ("numaplan --set nothing=1", "nothing"),
        ("numaplan --watch 3", "--watch is not for a loop on the host"),
        ("numaplan --sampler faults", "--sampler faults is not in the lab"),
        ("nobody", "nobody"),
    ],
)
def test_what_cannot_be_is_told_before_the_boot(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_online(text)


class Plugin:
    """What the plugin does with the shared memory."""

    def __init__(self, folder: Path) -> None:
        self.memory = np.memmap(
            folder / "samples", "u1", "w+", shape=FIRST + VCPUS * RECORDS * SAMPLE.itemsize
        )
        self.head = self.memory[:64].view("<u8")
        self.memory[8:16].view("<u4")[:] = VCPUS, RECORDS
        self.rings = self.memory[64 : 64 + VCPUS * 128].view("<u8").reshape(VCPUS, -1)
        self.records = self.memory[FIRST:].view(SAMPLE).reshape(VCPUS, RECORDS)

    def put(self, vcpu: int, task: int, time_ns: int = 0) -> None:
        ring = self.rings[vcpu]
        if ring[0] - ring[8] >= RECORDS:
            ring[1] += 1
            return
        record = self.records[vcpu, int(ring[0]) % RECORDS]
        record["task"], record["time_ns"], record["cpu"], record["period"] = task, time_ns, vcpu, PERIOD
        record["address"] = task * 4096
        ring[0] += 1


def test_rings_give_each_sample_once_and_count_the_lost(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.put(0, 9)
    rings = Rings(tmp_path)
    rings.start(PERIOD)
    assert plugin.head[2] == PERIOD
    for task in range(1, RECORDS + 4):
        plugin.put(1, task)
    plugin.put(0, 8)
    taken, lost = rings.take()
    assert sorted(taken["task"].tolist()) == sorted([8, *range(1, RECORDS + 1)])
    assert lost == 3
    assert rings.since_start() == RECORDS + 4
    plugin.put(1, 7)
    taken, lost = rings.take()
    assert (taken["task"].tolist(), lost) == ([7], 0)
    rings.stop()
    assert plugin.head[2] == 0


class Agent(threading.Thread):
    """The agent's side: two threads of process 5; the addresses of tasks are their ids."""

    def __init__(self, port: socket.socket) -> None:
        super().__init__(daemon=True)
        self.port, self.looks, self.bound = port, 0, b""
        self.start()

    def run(self) -> None:
        greeting = self.port.recv(16, socket.MSG_WAITALL)
        self.port.sendall(b"left over from before" + greeting)
        while head := self.port.recv(16, socket.MSG_WAITALL):
            what, length, number, _node = struct.unpack("<2I2i", head)
            answer = self.answer(what, number, self.port.recv(length, socket.MSG_WAITALL) if length else b"")
            self.port.sendall(struct.pack("<I", len(answer)) + answer)

    def answer(self, what: int, number: int, data: bytes) -> bytes:
        if what == 1:
            self.looks += 1
            ran = self.looks * 10**9
            lines = [
                str(self.looks * 2 * 10**9),
                *(f"5 {tid} 1 {ran // (tid - 4)} 0 {3:064x}" for tid in (5, 6)),
            ]
            return "\n".join(lines).encode()
        if what == 2:
            tasks = np.frombuffer(data, "<u8")
            return np.stack([tasks, np.full(len(tasks), 5)], axis=1).astype("<u4").tobytes()
        if what == 3:
            return struct.pack("<3i", 0, 1, -2) if number == 5 else struct.pack("<i", 3)
        self.bound = data
        return bytes(4)


def test_seconds_are_the_programs_accesses(tmp_path: Path) -> None:
    """However long they take: the busiest thread ran all the time, who ran half as long for half of it."""
    plugin, (ours, theirs) = Plugin(tmp_path), socket.socketpair()
    agent, stop = Agent(theirs), threading.Event()
    system = GuestSystem(Link(ours, stop), Rings(tmp_path))
    assert system.now() == 0.0
    assert not system.wait(stop, 0.0)
    for _ in range(20):
        plugin.put(0, 6, time_ns=0)
    plugin.records["flags"][0, 12:20] = 2  # answered by a cache of the cpu's
    seconds = 20 * PERIOD / ACCESSES_A_SECOND
    assert not system.wait(stop, 0.0)
    samples = system.take()
    assert (samples.tid == 6).all() and (samples.pid == 5).all()
    assert samples.count.sum() == 12 * PERIOD
    assert system.now() == pytest.approx(seconds)
    assert system.members((1,), 0.0) == [5]
    assert system.thread_ids(5) == [5, 6]
    for tid, share in ((5, 1.0), (6, 0.5)):
        times = system.thread_times(5, tid)
        assert times is not None
        assert times.ran_ns == pytest.approx(
            share * seconds * 1e9
        )  # since its birth, at this interval's rate
    system.bind(6, frozenset({0, 2}))
    assert agent.bound[:2] == bytes([5, 0])
    assert system.allowed_cpus(6) == {0, 2}
    assert system.page_nodes(5, np.array([1, 2])).tolist() == [1, -1]
    with pytest.raises(ProcessLookupError):
        system.page_nodes(4, np.array([1]))
    stop.set()
    assert system.wait(stop, 1.0)
    ours.close()
    agent.join()
    theirs.close()


def test_a_run_that_ends_ends_the_waiting_for_an_answer() -> None:
    ours, theirs = socket.socketpair()
    stop = threading.Event()
    stop.set()
    with ours, theirs, pytest.raises(MachineLacksError, match="has ended"):
        Link(ours, stop).greet()
