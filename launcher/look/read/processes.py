"""A process, as /proc and its cgroup tell of it."""

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from .devices import open_devices
from .files import fields, ids, number, numbered, raw, text
from .model import Memory, Process, Thread
from .numa_maps import read_numa_maps

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_CPU, _USER, _SYSTEM = 36, 11, 12  # fields of stat, counted behind the name
_FAULTS = re.compile(r"numa_faults node=(\d+) task_private=(\d+) task_shared=(\d+)")
_SYSCALL_FILTER = "2"  # of the line Seccomp


def read_process(root: Path, pid: int, *, whole: bool) -> Process | None:
    """A process; None when it is gone. whole: also its memory and devices, which take longer."""
    folder = root / f"proc/{pid}"
    begun = time.monotonic_ns()
    threads = tuple(t for tid in numbered(folder / "task") if (t := read_thread(folder, tid, whole=whole)))
    ended = time.monotonic_ns()
    state = fields(text(folder / "status"))
    if not threads or state.get("State", "Z")[:1] in "ZX":
        return None
    memory, hidden = _memory(folder) if whole else (None, "")
    cgroup = cgroup_of(root, pid)
    # The time between two looks at a thread is not to seem longer than it is; a recorded tree has its own.
    now = number(folder / "time_ns") or (begun if whole else ended)
    return Process(
        time_ns=now,
        pid=pid,
        name=state.get("Name", ""),
        argv=tuple(text(folder / "cmdline").rstrip("\0").split("\0")),
        threads=threads,
        memory=memory,
        hidden=hidden,
        cgroup=cgroup,
        cpuset=_cpuset(root, cgroup) if whole else (),
        seccomp=state.get("Seccomp", "") == _SYSCALL_FILTER,
        swapped=_kilobytes(state.get("VmSwap", "")),
        devices=open_devices(root, folder) if whole else (),
    )


def after_name(stat: str) -> list[str]:
    """The fields of a stat file behind the name, which may hold anything."""
    return stat[stat.rfind(")") + 2 :].split()


def ran_ns(stat: list[str]) -> int:
    """The cpu time of these fields."""
    return (int(stat[_USER]) + int(stat[_SYSTEM])) * _TICK_NS


def read_thread(folder: Path, tid: int, *, whole: bool) -> Thread | None:
    """A thread of a process's folder; None when it has ended."""
    task = folder / f"task/{tid}"
    with suppress(OSError, ValueError, IndexError):
        stat = raw(task / "stat")
        behind = after_name(stat)
        ran, waited = ran_ns(behind), 0
        with suppress(OSError, ValueError):
            ran, waited = map(int, raw(task / "schedstat").split()[:2])
        state = fields(raw(task / "status")) if whole else {}
        found = _FAULTS.findall(text(task / "sched")) if whole else ()
        return Thread(
            tid=tid,
            name=stat[stat.find("(") + 1 : stat.rfind(")")],
            cpu=int(behind[_CPU]),
            ran_ns=ran,
            waited_ns=waited,
            cpus=ids(state.get("Cpus_allowed_list", "")),
            mems=ids(state.get("Mems_allowed_list", "")),
            faults={int(node): int(own) + int(shared) for node, own, shared in found},
        )
    return None


def _memory(folder: Path) -> tuple[Memory | None, str]:
    try:
        with (folder / "numa_maps").open(errors="replace") as lines:
            return read_numa_maps(lines), ""
    except FileNotFoundError:
        return None, "this kernel has no numa_maps (CONFIG_NUMA)" if folder.exists() else "it has ended"
    except PermissionError:
        return None, "its memory is hidden from this user"
    except OSError as error:
        return None, error.strerror or str(error)


def _kilobytes(value: str) -> int:
    words = value.split()
    return int(words[0]) << 10 if words and words[0].isdecimal() else 0


def cgroup_of(root: Path, pid: int) -> str:
    """The folder below the root where the cpuset of a process is; empty where there is none."""
    found = ""
    for line in text(root / f"proc/{pid}/cgroup").splitlines():
        _, names, path = (*line.split(":", 2), "", "")[:3]
        if "cpuset" in names.split(","):
            return f"/sys/fs/cgroup/cpuset{path}"
        if not names:
            found = f"/sys/fs/cgroup{path}"
    return found.rstrip("/")


def _cpuset(root: Path, cgroup: str) -> tuple[int, ...]:
    folder = root / cgroup.lstrip("/")
    for name in ("cpuset.cpus.effective", "cpuset.effective_cpus"):
        if cgroup and (listed := text(folder / name).strip()):
            return ids(listed)
    return ()
