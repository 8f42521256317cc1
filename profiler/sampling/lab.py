"""Sample memory accesses in the virtual machine of `nlab`, whose sampler is a device of that machine.

The machine's agent serves it at a socket (lab/native/guest/sampler.c): requests of two 32-bit
numbers, answers of a 32-bit length and so many bytes, which together are what `perf record -o -` writes.
"""

import stat
import struct
from contextlib import suppress
from pathlib import Path

from numaplan.common import MachineLacksError

from ..perfdata.file.source import PerfDataError
from ..perfdata.stream import StreamDecoder
from .samples import LiveEvents, LiveSamples, live_samples

SOCKET = Path("/dev/numaplan-lab")
PERIOD = 40_009  # accesses a sample: an emulated machine makes some 50 million accesses a second
_REQUEST, _LENGTH = struct.Struct("<2I"), struct.Struct("<I")
_START, _TAKE = 1, 2
_MOST_BYTES = 64 << 20
_ANSWER_SECONDS = 30.0
_HINT = "see 'nlab doctor'"


def lab_events() -> LiveEvents:
    """What the virtual machine's sampler gives; raises MachineLacksError where there is none."""
    try:
        there = stat.S_ISSOCK(SOCKET.stat().st_mode)
    except OSError:
        there = False
    if not there:
        raise MachineLacksError(
            "backend lab: this is not a virtual machine of nlab", "take pebs, ibs or faults"
        )
    return LiveEvents("lab", (), (), PERIOD, machine_wide=True, unloaded=True)


class LabSampler:
    """The sampler of the whole virtual machine; `take` gives what came since it was last called.

    It leaves out our own accesses. One at a time can use it.
    """

    def __init__(self, what: LiveEvents) -> None:
        """Start sampling; raises MachineLacksError when the sampler is not there or in use."""
        import socket

        self.what = what
        self._decoder = StreamDecoder()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_ANSWER_SECONDS)
        try:
            self._socket.connect(str(SOCKET))
            self._decoder.feed(self._ask(_START, what.period))
        except (OSError, PerfDataError) as error:
            self.close()
            reason = getattr(error, "strerror", None) or "another uses it"
            raise MachineLacksError(f"the virtual machine's sampler: {reason}", _HINT) from error

    def take(self) -> LiveSamples:
        """The samples since the last call; raises MachineLacksError once the sampler has ended."""
        try:
            self._decoder.feed(self._ask(_TAKE, 0))
            piece = self._decoder.take()
        except OSError as error:
            raise MachineLacksError("the virtual machine's sampler ended", _HINT) from error
        except PerfDataError as error:
            raise MachineLacksError(f"the sampler's samples cannot be read: {error.what}", _HINT) from error
        return live_samples(piece.samples, piece.events, piece.lost)

    def close(self) -> None:
        """Stop sampling."""
        with suppress(OSError):
            self._socket.close()

    def _ask(self, what: int, how: int) -> bytes:
        self._socket.sendall(_REQUEST.pack(what, how))
        (length,) = _LENGTH.unpack(self._receive(_LENGTH.size))
        if length > _MOST_BYTES:
            raise OSError("an answer too long")
        return self._receive(length)

    def _receive(self, count: int) -> bytes:
        data = bytearray(count)
        at = 0
        while at < count:
            got = self._socket.recv_into(memoryview(data)[at:])
            if not got:
                raise OSError("the connection was closed")
            at += got
        return bytes(data)
