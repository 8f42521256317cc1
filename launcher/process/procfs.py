"""What /proc says about running processes: who descends from whom, threads, run times, resident pages."""

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_NODE_PAGES = re.compile(rb" N([0-9]+)=([0-9]+)")
_PAGE_KIB = re.compile(rb"kernelpagesize_kB=([0-9]+)")
_PARENTS_SECONDS = 10.0
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of the flags
_CPU_FIELD, _FLAGS_FIELD, _PARENT_FIELD = 36, 6, 1  # of /proc/PID/stat, counted behind the name


class ThreadTimes(NamedTuple):
    """A thread's last cpu, and the ns that it ran and that it waited for a cpu since it began."""

    cpu: int
    ran_ns: int
    waited_ns: int


def _read(path: str) -> bytes:
    """A small file's content; raises OSError. Files of /proc are read whole by one call."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 1 << 16)
    finally:
        os.close(fd)


def _after_name(stat: bytes) -> list[bytes]:
    return stat[stat.rfind(b")") + 2 :].split()


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return _after_name(_read(f"/proc/{pid}/stat"))[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def owner(pid: int) -> int | None:
    """The user id that a process runs as, None when it is gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116  # asked often
    except OSError:
        return None


def parent_of(pid: int) -> int:
    """The parent's id, 0 when the process is gone."""
    try:
        return int(_after_name(_read(f"/proc/{pid}/stat"))[_PARENT_FIELD])
    except (OSError, IndexError, ValueError):
        return 0


def families(roots: Iterable[int], parents: dict[int, int] | None = None) -> list[int]:
    """These processes and those of their living descendants that run as the same users, ascending.

    parents: what was found at the last call, and is now: only those of new processes are then read.
    """
    living = _process_ids()
    known = {} if parents is None else {pid: parents[pid] for pid in living if pid in parents}
    known |= {pid: parent_of(pid) for pid in living if pid not in known}
    if parents is not None:
        parents.clear()
        parents.update(known)
    children: dict[int, list[int]] = {}
    for pid, parent in known.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = [pid for pid in roots if is_alive(pid)]
    users = {owner(pid) for pid in waiting}
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += [child for child in children.get(pid, []) if is_alive(child)]
    return sorted(pid for pid in found if owner(pid) in users)


class Families:
    """The processes of some roots; /proc is gone through again only when a task was made since, or now and
    then, as processes get other parents, too.
    """

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}
        self._found: list[int] = []
        self._asked: tuple[int, tuple[int, ...]] = (0, ())
        self._until = 0.0

    def members(self, roots: Iterable[int], now: float) -> list[int]:
        """What `families` gives; now: seconds of any clock."""
        asked = (newest_task(), tuple(roots))
        if now > self._until:
            self._parents, self._until = {}, now + _PARENTS_SECONDS
        elif asked == self._asked and asked[0]:
            return [pid for pid in self._found if is_alive(pid)]
        self._asked, self._found = asked, families(asked[1], self._parents)
        return self._found


def newest_task() -> int:
    """The id that the kernel gave last, to a process or a thread; 0 where it does not tell."""
    try:
        return int(_read("/proc/loadavg").split()[-1])
    except (OSError, IndexError, ValueError):
        return 0


def processes_of(user: int) -> list[int]:
    """All processes of a user, without the kernel's own threads."""
    return sorted(pid for pid in _process_ids() if owner(pid) == user and not _is_kernels(pid))


def _is_kernels(pid: int) -> bool:
    try:
        return bool(int(_after_name(_read(f"/proc/{pid}/stat"))[_FLAGS_FIELD]) & _KERNEL_THREAD)
    except (OSError, IndexError, ValueError):
        return False


def _process_ids() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208  # names alone


def thread_ids(pid: int) -> list[int]:
    """The threads of a process, ascending; none when it has ended."""
    try:
        return sorted(map(int, os.listdir(f"/proc/{pid}/task")))  # noqa: PTH208
    except OSError:
        return []


def thread_times(pid: int, tid: int) -> ThreadTimes | None:
    """Where a thread ran last and how long, None when it has ended."""
    try:
        cpu = int(_after_name(_read(f"/proc/{pid}/task/{tid}/stat"))[_CPU_FIELD])
        ran, waited = map(int, _read(f"/proc/{pid}/task/{tid}/schedstat").split()[:2])
    except (OSError, ValueError, IndexError):
        return None
    return ThreadTimes(cpu, ran, waited)


def resident_pages(pid: int, node_ids: Sequence[int], page_bytes: int) -> list[float]:
    """Resident pages of a process on each of the nodes (in pages of page_bytes), zeros when not readable."""
    with suppress(OSError), open(f"/proc/{pid}/numa_maps", "rb") as lines:  # noqa: PTH123
        return count_resident_pages(lines, node_ids, page_bytes)
    return [0.0] * len(node_ids)


def count_resident_pages(lines: Iterable[bytes], node_ids: Sequence[int], page_bytes: int) -> list[float]:
    """The same from the lines of numa_maps."""
    row = {node: index for index, node in enumerate(node_ids)}
    pages = [0.0] * len(node_ids)
    for line in lines:
        size = _PAGE_KIB.search(line)
        scale = int(size[1]) * 1024 / page_bytes if size else 1.0
        for node, count in _NODE_PAGES.findall(line):
            if int(node) in row:
                pages[row[int(node)]] += int(count) * scale
    return pages


def numa_balancing() -> int:
    """The kernel's own setting: 0 off, 1 on, 2 tiering; 0 where it has none."""
    try:
        return int((_PROC / "sys/kernel/numa_balancing").read_text())
    except (OSError, ValueError):
        return 0
