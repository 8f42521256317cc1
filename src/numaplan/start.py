"""Where the commands start (by way of common/native/start): what each needs is imported only then.

Until it runs there is nothing to tidy up: Ctrl-C just ends it, without a traceback of some import. One that
came while Python itself started has waited, and ends it here.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))

import os  # noqa: E402
import sys  # noqa: E402
from contextlib import suppress  # noqa: E402
from importlib import import_module  # noqa: E402
from pathlib import Path  # noqa: E402

_LOCALE = "LC_CTYPE"
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
    _take_back_locale()
    name, *arguments = words
    sys.argv = [str(Path(script).with_name(name)), *arguments]
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)  # what ps and top show
    if arguments[:1] == ["record"] and "--on-signal" in _before(arguments, "--"):
        import_module("numaplan.profiler.backends.on_signal").hold()
    code: int = import_module(f"numaplan.{_MODULES[name]}").main()
    import_module("numaplan.common.processes.dying").die_as_program(code)
    return code


def _before(words: list[str], end: str) -> list[str]:
    return words[: words.index(end)] if end in words else words


def _take_back_locale() -> None:
    """Python names a locale of its own where there is none (PEP 538): not for the programs that we start."""
    if _LOCALE not in os.environ:
        return
    with suppress(OSError):
        given = Path("/proc/self/environ").read_bytes().split(b"\0")  # as we were started
        named = [text for text in given if text.startswith(_LOCALE.encode() + b"=")]
        if named:
            os.environb[_LOCALE.encode()] = named[0].partition(b"=")[2]
        else:
            del os.environ[_LOCALE]
