"""The cpus that this process may have."""

import os
from collections.abc import Collection
from contextlib import suppress


def own_cpuset() -> Collection[int]:
    """The cpus that this process's cpuset allows, whatever it is bound to."""
    bound = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
        return os.sched_getaffinity(0)
    except OSError:
        return bound
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, bound)
