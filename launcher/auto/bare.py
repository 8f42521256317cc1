"""The program as if we were not there: this process becomes it."""

import os
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from numaplan.common import UsageError, is_asked_to_end, started_as


def become(
    program: str, argv: Sequence[str], environment: Mapping[str, str], cpus: Collection[int]
) -> NoReturn:
    """Run a program in our place, on the cpus that we had; raises UsageError when it cannot be started."""
    if is_asked_to_end():
        raise KeyboardInterrupt
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    with suppress(OSError):
        os.sched_setaffinity(0, cpus)
    previous = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGPIPE, signal.SIGXFSZ)}
    try:
        words = started_as([program, *argv[1:]])
        os.execve(words[0], words if words[0] != program else list(argv), dict(environment))
    except (OSError, ValueError) as error:
        for number, handler in previous.items():  # which Python ignores
            signal.signal(number, handler)
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{argv[0]}: {reason}", "give a program that runs on this machine") from error
