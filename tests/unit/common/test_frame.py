"""Signals that interrupt a command as Ctrl-C does."""

import os
import signal

import pytest

from numaplan.common import interruptible


def test_signals_interrupt_inside_and_are_told() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interruptible(signal.SIGTERM, signal.SIGHUP) as received:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) == before
