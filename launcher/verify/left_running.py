"""Processes of a launch that go on when its first one has ended: daemons, and what is in the background."""

from contextlib import suppress
from pathlib import Path

from numaplan.profiler import read_control


def left_running(workdir: Path) -> str:
    """What to say of processes with the library that still run; empty when there are none."""
    folder = f" {workdir.resolve()}/".encode()
    pids = {entry.pid for entry in read_control(workdir) if entry.end_ns < 0}
    count = sum(_maps(pid, folder) for pid in pids)
    if not count:
        return ""
    who, they = ("process still runs", "it does") if count == 1 else ("processes still run", "they do")
    start = "it starts" if count == 1 else "they start"
    return f"{count} {who} in the background: what {they} from now on is not told, what {start} is not placed"


def _maps(pid: int, folder: bytes) -> bool:
    """Whether a process has a file of the folder mapped; a number alone may be another one."""
    with suppress(OSError):
        return folder in Path(f"/proc/{pid}/maps").read_bytes()
    return False
