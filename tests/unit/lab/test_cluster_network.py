"""The network between guests: frames reach whom they are for, and each byte of a program counts once."""

import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from numaplan.lab.cluster.switch import Switch
from numaplan.lab.cluster.traffic import Traffic, read_segment
from numaplan.lab.guest.cable import Cable, hardware_address
from numaplan.lab.guest.qemu import command_line
from numaplan.lab.guest.shape import shape_guest
from numaplan.machine import Machine

SYN = 2
BROADCAST = b"\xff" * 6


def frame(
    said: bytes,
    number: int = 1,
    *,
    ports: tuple[int, int] = (40000, 50000),
    flags: int = 0,
    udp: bool = False,
) -> bytes:
    """What host 0 says to host 1."""
    head = struct.pack(">HHHH", *ports, 8 + len(said), 0)
    if not udp:
        head = struct.pack(">HHIIBBHHH", *ports, number % (1 << 32), 0, 5 << 4, flags, 0, 0, 0)
    total = 20 + len(head) + len(said)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, total, 0, 0, 64, 17 if udp else 6, 0, b"\n\0\0\1", b"\n\0\0\2")
    return hardware_address(1) + hardware_address(0) + b"\x08\0" + ip + head + said


def sent(*frames: bytes) -> tuple[int, int]:
    """(the application's, the launcher's) bytes from host 0 to host 1."""
    traffic = Traffic(2)
    for one in frames:
        traffic.add(0, 1, one)
    assert traffic.application.sum() == traffic.application[0, 1]
    return int(traffic.application[0, 1]), int(traffic.launcher[0, 1])


def test_bytes_count_and_headers_do_not() -> None:
    assert sent(frame(b"", 7, flags=SYN), frame(b"hello", 8), frame(b"", 13)) == (5, 0)
    assert sent(frame(b"hello", udp=True), frame(b"you", udp=True)) == (8, 0)
    assert sent(b"", b"\0" * 13, hardware_address(1) * 2 + b"\x08\x06" + b"\0" * 40) == (0, 0)


def test_what_is_sent_again_counts_once() -> None:
    assert sent(frame(b"hello", 1), frame(b"hello", 1), frame(b"hello world", 1), frame(b"ld", 10)) == (11, 0)
    assert sent(frame(b"a", 1), frame(b"c", 3), frame(b"b", 2)) == (3, 0)
    assert sent(frame(b"abcd", (1 << 32) - 2), frame(b"efgh", 2), frame(b"", 0)) == (8, 0)


def test_a_port_may_be_used_again() -> None:
    assert sent(
        frame(b"", 7, flags=SYN), frame(b"abc", 8), frame(b"", 900, flags=SYN), frame(b"de", 901)
    ) == (5, 0)


@pytest.mark.parametrize("ports", [(2222, 40000), (40000, 2222), (2300, 40000), (40000, 2721)])
def test_what_launchers_say_is_told_apart(ports: tuple[int, int]) -> None:
    assert sent(frame(b"hello", ports=ports), frame(b"you")) == (3, 5)


@given(st.binary(max_size=80), st.sampled_from([b"\x08\0", b"\x86\xdd", b""]))
def test_no_frame_is_too_odd(noise: bytes, kind: bytes) -> None:
    found = read_segment(b"\0" * 12 + kind + noise)
    assert found is None or 0 <= found.size < 1 << 16


def whole(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def received(end: socket.socket, count: int) -> bytes:
    return end.recv(count, socket.MSG_WAITALL)


def test_frames_reach_their_host_or_all_others() -> None:
    with Switch(["h0", "h1", "h2"]) as switch:
        ends = [cable.end for cable in switch.cables]
        to_one, to_all = whole(frame(b"hello")), whole(BROADCAST + hardware_address(0) + b"\x08\x06who?")
        data = to_one + to_all
        for at in range(0, len(data), 7):  # pieces come as they come
            ends[0].sendall(data[at : at + 7])
        assert received(ends[1], len(data)) == data
        assert received(ends[2], len(to_all)) == to_all
        traffic = switch.take_traffic()
        assert traffic.application.tolist() == [[0, 5, 0], [0, 0, 0], [0, 0, 0]]
        assert not switch.take_traffic().application.any()


def test_a_host_that_has_gone_does_not_hold_up_others() -> None:
    with Switch(["h0", "h1", "h2"]) as switch:
        gone, other = switch.cables[1].end, switch.cables[2].end
        gone.shutdown(socket.SHUT_RDWR)
        to_all = whole(BROADCAST + hardware_address(0) + b"\x08\x06who?")
        switch.cables[0].end.sendall(whole(frame(b"hello")) + to_all)
        assert received(other, len(to_all)) == to_all


def test_qemu_gets_the_cable_and_the_kernel_the_names(tmp_path: Path) -> None:
    end, peer = socket.socketpair()
    shape = shape_guest(Machine.load("1x1"), 256, 1 << 20)
    with end, peer:
        cable = Cable(end, 1, ["h0", "h1"])
        words = command_line(shape, tmp_path, tmp_path, tmp_path, [], None, version=None, cable=cable)
        number = end.fileno()
    assert words[words.index("-netdev") + 1] == f"socket,id=cable,fd={number}"
    assert "virtio-net-pci,netdev=cable,mac=52:54:00:6e:6c:01,romfile=" in words
    assert words[words.index("-append") + 1].endswith(" numaplan_hosts=h0,h1 numaplan_host=1")
    assert "-netdev" not in command_line(shape, tmp_path, tmp_path, tmp_path, [], None, version=None)
