"""From what a user names (a process, a unit, a cgroup, a container, a Slurm job) to process ids."""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from numaplan.common import UsageError

from .files import numbered, text
from .processes import after_name

_CGROUPS = "sys/fs/cgroup"
_ENGINES = r"(?:docker|libpod|crio|cri-containerd)"
_PARENT = 1  # of stat, counted behind the name


def with_children(root: Path, pids: Sequence[int]) -> tuple[int, ...]:
    """These processes and all that descend from them, ascending; raises UsageError for one that is not."""
    for pid in pids:
        if not text(root / f"proc/{pid}/stat"):
            raise UsageError(f"no process {pid}", "give the id of a running process")
    children: dict[int, list[int]] = {}
    for pid in numbered(root / "proc"):
        with suppress(ValueError, IndexError):
            parent = int(after_name(text(root / f"proc/{pid}/stat"))[_PARENT])
            children.setdefault(parent, []).append(pid)
    found, waiting = set[int](), list(pids)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, [])
    return tuple(sorted(found))


def of_cgroup(root: Path, path: str) -> tuple[int, ...]:
    """The processes of a cgroup and of those below it; raises UsageError where there is none."""
    inside = path.removeprefix("/sys/fs/cgroup").strip("/")
    folders = [folder for base in _hierarchies(root) if (folder := base / inside).is_dir()]
    if not folders or ".." in inside.split("/"):
        raise UsageError(f"no cgroup {path}", "give a folder below /sys/fs/cgroup")
    return _members(folders, path)


def of_unit(root: Path, name: str) -> tuple[int, ...]:
    """The processes of a systemd unit, `.service` by default; raises UsageError."""
    unit = name if re.search(r"\.(service|scope|slice)$", name) else f"{name}.service"
    asked = _said("systemctl", "show", "--property=ControlGroup", "--value", "--", unit).strip()
    if asked.strip("/"):
        return of_cgroup(root, asked)
    return _members(list(_folders(root, re.compile(re.escape(unit)))), f"unit {unit}")


def of_container(root: Path, name: str) -> tuple[int, ...]:
    """The processes of a container by its id or what it starts with, or its name; raises UsageError."""
    if re.fullmatch(r"[0-9a-f]{6,64}", name):
        pattern = re.compile(rf"(?:{_ENGINES}-)?{name}[0-9a-f]*(?:\.scope)?")
        if folders := list(_folders(root, pattern)):
            return _members(folders, f"container {name}")
    for engine in ("podman", "docker"):
        pid = _said(engine, "inspect", "--format", "{{.State.Pid}}", "--", name).strip()
        if pid.isdecimal() and int(pid):
            return with_children(root, [int(pid)])
    raise UsageError(f"no running container {name}", "give an id that 'podman ps' or 'docker ps' lists")


def of_slurm_job(root: Path, job: str) -> tuple[int, ...]:
    """The processes of a Slurm job on this host; raises UsageError."""
    if folders := list(_folders(root, re.compile(rf"job_{re.escape(job)}"))):
        return _members(folders, f"Slurm job {job}")
    rows = [line.split() for line in _said("scontrol", "listpids", job).splitlines()]
    found = [int(row[0]) for row in rows if row and row[0].isdecimal()]
    if not found:
        raise UsageError(f"no processes of Slurm job {job} on this host", "see 'squeue' for where it runs")
    return tuple(sorted(found))


def _hierarchies(root: Path) -> Iterator[Path]:
    """Where cgroups are: one tree, or one for each controller (version 1)."""
    base = root / _CGROUPS
    yield base
    for name in ("cpuset", "memory", "pids", "systemd", "unified"):
        if (base / name).is_dir() and not (base / "cgroup.controllers").exists():
            yield base / name


def _folders(root: Path, pattern: re.Pattern[str]) -> Iterator[Path]:
    for folder, names, _files in os.walk(root / _CGROUPS):
        for name in names:
            if pattern.fullmatch(name):
                yield Path(folder) / name


def _members(folders: Sequence[Path], what: str) -> tuple[int, ...]:
    found = set[int]()
    for top in folders:
        for folder, _names, files in os.walk(top):
            if "cgroup.procs" in files:
                found.update(int(word) for word in text(Path(folder) / "cgroup.procs").split())
    if not found - {0}:
        raise UsageError(f"{what}: no processes", "start it first, or check the name")
    return tuple(sorted(found - {0}))


def _said(*command: str) -> str:
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False, text=True
        )
        return done.stdout if done.returncode == 0 else ""
    return ""
