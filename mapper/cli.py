"""`nmap`: plain command lines of `nmap plan` are read here, at once; all others by cli_full.py.

The command line library takes longer to load than a recording of eight threads takes to be planned.
"""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from numaplan.common.frame import run_framed

if TYPE_CHECKING:
    from numaplan.mapper.plan_request import PlanRequest

# option -> (field of PlanRequest, what its word is)
OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "-o": ("output", Path),
    "--output": ("output", Path),
    "--machine": ("machine", str),
    "--comm": ("comm", Path),
    "--loads": ("loads", Path),
    "--phases": ("phases", Path),
    "--method": ("method", str),
    "--objective": ("objective", str),
    "--effort": ("effort", str),
    "--seed": ("seed", int),
    "--tolerance": ("tolerance", float),
}
_YOUNG = 50_000  # objects made before garbage is looked for; start-up makes many that all stay


def quick_request(words: Sequence[str]) -> "PlanRequest | None":
    """The request of a `plan` command line with only these options; None when cli_full.py should read it."""
    if words[:1] != ["plan"]:
        return None
    fields: dict[str, Any] = {}
    traces: list[Path] = []
    at = 1
    while at < len(words):
        word = words[at]
        at += 1
        if not word.startswith("-"):
            traces.append(Path(word))
            continue
        name, equals, value = word.partition("=")
        if name not in OPTIONS or (equals and not name.startswith("--")):
            return None
        if not equals:
            if at == len(words) or words[at].startswith("-"):
                return None
            value = words[at]
            at += 1
        field, kind = OPTIONS[name]
        try:
            fields[field] = kind(value)
        except ValueError:
            return None
    from numaplan.mapper.plan_request import PlanRequest

    return PlanRequest(traces=traces, **fields)


def main() -> None:
    """Entry point of `nmap`."""
    gc.set_threshold(_YOUNG)
    set_environment()
    request = quick_request(sys.argv[1:])
    if request is None:
        from numaplan.mapper.cli_full import main as read_all

        read_all()
        return
    from numaplan.mapper.plan_request import write_plan
    from numaplan.mapper.reading import Opening

    opening = Opening(request.traces[0], stays_open=True) if request.traces and request.comm is None else None
    _end(run_framed(lambda: write_plan(request, opening), "nmap"))


def set_environment() -> None:
    """What numpy is to find when it loads."""
    # Else it starts a thread a cpu for matrices larger than ours, which spin for a while as they wait.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # These it would set itself, and take away again, while the thread that opens a trace reads the
    # environment: that is undefined in C, and does crash.
    for name in ("OPENBLAS_MAIN_FREE", "GOTOBLAS_MAIN_FREE"):
        os.environ.setdefault(name, "1")


def _end(code: int) -> NoReturn:
    """Without taking apart what the system takes back at once: that would take a tenth of the time."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(code)
