"""The client of the virtual machine's sampler: what it asks, and what it does when the other side fails."""

import socket
import struct
import threading
from pathlib import Path

import pytest

from numaplan.common import MachineLacksError
from numaplan.profiler.backends.perf import hardware_samplers
from numaplan.profiler.backends.perf.hardware_samplers import Hardware
from numaplan.profiler.sampling import lab as live_lab
from numaplan.profiler.sampling.lab import LabSampler, lab_events
from numaplan.profiler.sampling.samplers import live_events

HEAD = struct.pack("<2Q", 0x32454C4946524550, 16)  # of a perf pipe: PERFILE2 and its size
LOST = struct.pack("<I2H2Q", 2, 0, 24, 1, 77)  # PERF_RECORD_LOST of 77 events
ANSWER = struct.pack("<I", len(HEAD)) + HEAD, struct.pack("<I", len(LOST)) + LOST


class Server(threading.Thread):
    """Accepts one client and gives these answers, one for each request; then it hangs up."""

    def __init__(self, path: Path, answers: tuple[bytes, ...]) -> None:
        super().__init__(daemon=True)
        self.requests: list[tuple[int, ...]] = []
        self._answers = answers
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self.start()

    def run(self) -> None:
        connection, _ = self._socket.accept()
        with connection, self._socket:
            for answer in self._answers:
                self.requests.append(struct.unpack("<2I", connection.recv(8)))
                connection.sendall(answer)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the sampler is sought."""
    monkeypatch.setattr(live_lab, "SOCKET", tmp_path / "sampler")
    return tmp_path / "sampler"


def test_there_is_none_outside_a_virtual_machine(path: Path) -> None:
    with pytest.raises(MachineLacksError, match="not a virtual machine"):
        live_events("lab", 1000)
    path.write_text("no socket")
    with pytest.raises(MachineLacksError):
        lab_events()


def test_what_lacks_a_pmu_is_told_what_samples_live_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware_samplers, "read_hardware", Hardware)
    with pytest.raises(MachineLacksError) as raised:
        live_events("pebs", 1000)
    assert "--sampler faults" in raised.value.hint and "--backend" not in raised.value.hint


def test_it_is_the_first_choice_where_it_is_there(path: Path) -> None:
    Server(path, ())
    assert live_events("auto", 1000).backend == "lab"


def test_what_was_lost_is_told_and_an_end_noticed(path: Path) -> None:
    server = Server(path, ANSWER)
    sampler = LabSampler(lab_events())
    taken = sampler.take()
    assert (len(taken.tid), taken.lost) == (0, 77)
    assert server.requests == [(1, live_lab.PERIOD), (2, 0)]
    with pytest.raises(MachineLacksError, match="ended"):
        sampler.take()
    sampler.close()


@pytest.mark.parametrize(
    "answer", [b"", b"\x01", struct.pack("<I", 1 << 31), struct.pack("<I", 9) + b"short"]
)
def test_a_sampler_that_does_not_answer_is_none(path: Path, answer: bytes) -> None:
    """It hangs up (as it does when another uses it), or promises what it does not send."""
    Server(path, (answer,))
    with pytest.raises(MachineLacksError):
        LabSampler(lab_events())


def test_damage_is_told(path: Path) -> None:
    nonsense = bytes(range(64)) * 4
    Server(path, (struct.pack("<I", len(HEAD)) + HEAD, struct.pack("<I", len(nonsense)) + nonsense))
    sampler = LabSampler(lab_events())
    with pytest.raises(MachineLacksError):
        sampler.take()
        sampler.take()
    sampler.close()
