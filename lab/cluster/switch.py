"""The switch between guests: passes their frames on, and counts them."""

import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress

from ..guest.cable import Cable, hardware_address
from .traffic import Traffic

_LENGTH = struct.Struct(">I")
_CHUNK = 1 << 18
_SHORTEST = 14  # bytes of a frame


class Switch:
    """As many sockets as hosts, and what goes through them; a context manager.

    The guests' network reaches nothing else: not this machine, not others.
    """

    def __init__(self, names: Sequence[str]) -> None:
        pairs = [socket.socketpair() for _ in names]
        self._own = [own for own, _ in pairs]
        self._sending = [threading.Lock() for _ in names]
        self._places = {hardware_address(host): host for host in range(len(names))}
        self._counting = threading.Lock()
        self._traffic = Traffic(len(names))
        self.cables = [Cable(end, host, names) for host, (_, end) in enumerate(pairs)]

    def __enter__(self) -> "Switch":
        for host in range(len(self._own)):
            threading.Thread(target=self._serve, args=(host,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        for end in (*self._own, *(cable.end for cable in self.cables)):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def take_traffic(self) -> Traffic:
        """What was counted since this was last asked."""
        with self._counting:
            taken, self._traffic = self._traffic, Traffic(len(self._own))
        return taken

    def _serve(self, host: int) -> None:
        """Pass on what a host sends."""
        left = b""
        with suppress(OSError):
            while data := self._own[host].recv(_CHUNK):
                left = self._pass_on(host, left + data)

    def _pass_on(self, host: int, data: bytes) -> bytes:
        """All whole frames of some data; returns what is left of it."""
        at = 0
        while len(data) - at >= _LENGTH.size:
            end = at + _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
            if end > len(data):
                break
            self._pass_frame_on(host, data[at + _LENGTH.size : end], data[at:end])
            at = end
        return data[at:]

    def _pass_frame_on(self, host: int, frame: bytes, whole: bytes) -> None:
        if len(frame) < _SHORTEST:
            return
        target = self._places.get(frame[:6])
        others = [place for place in range(len(self._own)) if place != host]
        for other in others if target is None else [target]:
            with self._counting:
                self._traffic.add(host, other, frame)
            # A host that has gone gets nothing more.
            with suppress(OSError), self._sending[other]:
                self._own[other].sendall(whole)
