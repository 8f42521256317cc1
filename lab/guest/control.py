"""The conversation with a guest's agent: frames of keys and values, waited for as long as the guest lives."""

import math
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from numaplan.common import NotSoError

from .health import Heartbeat

FRAME_LIMIT = 1 << 20
_FAULTS = (-signal.SIGABRT, -signal.SIGSEGV)  # how QEMU ends by a fault of its own


class GuestError(NotSoError):
    """The guest itself failed (not the program in it)."""


class QemuFaultError(GuestError):
    """It hangs or has ended by a fault of QEMU's: another one may not."""


class Control:
    """The control port of a guest.

    process: QEMU's; folder: where it and the guest's kernel say what went wrong.
    """

    def __init__(
        self, port: socket.socket, process: subprocess.Popen[bytes], folder: Path, heartbeat: Heartbeat
    ) -> None:
        self._port, self._process, self._folder, self._heartbeat = port, process, folder, heartbeat

    def send(self, payload: bytes) -> None:
        """A frame: its length, then the payload; raises GuestError when the guest has stopped."""
        try:
            self._port.sendall(struct.pack("<I", len(payload)) + payload)
        except OSError:
            self._fail()

    def receive(self, limit: float | None, meanwhile: Callable[[], None] | None = None) -> dict[str, str]:
        """The next frame, as keys and values; raises QemuFaultError when none comes for `limit` seconds.

        meanwhile: called whenever the guest is asked whether it lives.
        """
        end = time.monotonic() + limit if limit else math.inf
        self._heartbeat.reset()
        try:
            (length,) = struct.unpack("<I", self._receive_exactly(4, end, meanwhile))
            if length > FRAME_LIMIT:
                raise GuestError(f"a frame of {length} bytes from the guest", "report it")
            fields = self._receive_exactly(length, end).decode().split("\0")
        except TimeoutError:
            raise QemuFaultError(
                f"the guest did not answer within {limit:.0f} s", self._last_message()
            ) from None
        return dict(zip(fields[0:-1:2], fields[1:-1:2], strict=True))

    def check(self) -> None:
        """Raise GuestError when the guest has stopped, QemuFaultError when it hangs or QEMU crashed."""
        if self._process.poll() is not None:
            self._fail()
        self._check_health(math.inf)

    def _receive_exactly(self, count: int, end: float, meanwhile: Callable[[], None] | None = None) -> bytes:
        """Raises TimeoutError when it has not come by then, GuestError when it cannot come any more."""
        data = b""
        while len(data) < count:
            wait = min(end - time.monotonic(), self._heartbeat.patience.check_seconds)
            self._port.settimeout(max(0.001, wait))
            with suppress(ConnectionError):
                try:
                    more = self._port.recv(count - len(data))
                except TimeoutError:
                    if meanwhile:
                        meanwhile()
                    self._check_health(end)
                    continue
                if more:
                    data += more
                    continue
            self._fail()
        return data

    def _check_health(self, end: float) -> None:
        if self._heartbeat.has_stopped():
            raise QemuFaultError("the virtual machine hangs because of a bug in QEMU", "run it again")
        if time.monotonic() >= end:
            raise TimeoutError

    def _fail(self) -> NoReturn:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
        if self._process.returncode in _FAULTS:
            raise QemuFaultError("the virtual machine ended by a bug in QEMU", self._last_message())
        raise GuestError("the guest stopped", self._last_message())

    def _last_message(self) -> str:
        """What QEMU or the guest's kernel said last."""
        for name in ("qemu", "console"):
            with suppress(OSError):
                lines = (self._folder / name).read_text(errors="replace").split("\n")
                if spoken := [line.strip() for line in lines if line.strip()]:
                    return f"it said: {spoken[-1][:300]}"
        return "it said nothing; try again with a smaller machine"
