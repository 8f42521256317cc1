"""Where the commands start (by way of common/native/start): what each needs is imported only then.

Until it runs there is nothing to tidy up: Ctrl-C just ends it, without a traceback of some import. One that
came while Python itself started has waited, and ends it here.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))

import sys  # noqa: E402
from contextlib import suppress  # noqa: E402
from importlib import import_module  # noqa: E402
from pathlib import Path  # noqa: E402

_MODULES = {
    "nprof": "profiler.commands.main",
    "nmap": "mapper.commands.main",
    "nlaunch": "launcher.commands.main",
    "nlab": "lab.commands.main",
    "numaplan": "__main__",
}


def main() -> int:
    """Run the command that the first word names with the words after it; returns its exit code."""
    script, *words = sys.argv
    if not words or words[0] not in _MODULES:
        print(f"numaplan-start: error: this starts one of {', '.join(_MODULES)}", file=sys.stderr)
        return 2
    name, *arguments = words
    sys.argv = [str(Path(script).with_name(name)), *arguments]
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)  # what ps and top show
    code: int = import_module(f"numaplan.{_MODULES[name]}").main()
    return code
