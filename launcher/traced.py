"""The tracer's log: a line for each thread's birth and end (native/trace/bind.c)."""

from pathlib import Path

from numaplan.launcher.seen import Observed, SeenThread
from numaplan.launcher.tracing import LOG

LIMIT = 256 << 20  # bytes read
_FIELDS = 8


def read_traced(workdir: Path, observed: Observed) -> None:
    """Add what the tracer saw; a line that was cut short is left out."""
    try:
        with (workdir / LOG).open("rb") as file:
            data = file.read(LIMIT)
    except OSError:
        return
    for line in data.decode(errors="replace").split("\n")[:-1]:
        words = line.split(" ")
        if len(words) == _FIELDS:
            _take(observed, words)


def _take(observed: Observed, words: list[str]) -> None:
    event, process, path, *numbers, mask = words
    try:
        pid, tid, planned, error = (int(number) for number in numbers)
        cpus = cpus_of(bytes.fromhex(mask)) if mask != "-" else ()
    except ValueError:
        return
    observed.outside.add(process)
    if process not in observed.processes:
        observed.processes.append(process)
    thread = observed.threads.get((process, path))
    if thread is None or event == "b":
        thread = observed.threads[process, path] = SeenThread(process, path, tid, pid=pid)
    thread.planned = bool(planned)
    thread.error = thread.error or error
    thread.cpus = cpus or thread.cpus
    thread.ended = event == "e"


def cpus_of(mask: bytes) -> tuple[int, ...]:
    """The numbers of the bits that are set, lowest first."""
    return tuple(8 * byte + bit for byte, value in enumerate(mask) for bit in range(8) if value >> bit & 1)
