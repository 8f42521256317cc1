"""Where the commands start: what each needs is imported only then.

Until it runs there is nothing to tidy up: Ctrl-C just ends it, without a traceback of some import.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def nprof() -> int:
    """Entry point of `nprof`; returns the exit code."""
    from numaplan.profiler.commands.main import main

    return main()


def nmap() -> int:
    """Entry point of `nmap`; returns the exit code."""
    from numaplan.mapper.commands.main import main

    return main()


def nlaunch() -> int:
    """Entry point of `nlaunch`; returns the exit code."""
    from numaplan.launcher.commands.main import main

    return main()


def nlab() -> int:
    """Entry point of `nlab`; returns the exit code."""
    from numaplan.lab.commands.main import main

    return main()


def numaplan() -> int:
    """Entry point of `numaplan`; returns the exit code."""
    from numaplan.__main__ import main

    return main()
