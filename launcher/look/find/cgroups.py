"""Commands that change what a cgroup allows, in the words of whoever made it."""

import re
from collections.abc import Iterable

from numaplan.common import shell_line
from numaplan.machine import format_list

from ..read.model import Process

_ENGINES = {"docker": "docker", "libpod": "podman"}
_SCOPE = re.compile(r"(docker|libpod)-([0-9a-f]{12})[0-9a-f]*\.scope")
_UNIT = re.compile(r"[^/]+\.(?:service|scope|slice)")
_KEYS = {"cpus": ("AllowedCPUs", "--cpuset-cpus"), "mems": ("AllowedMemoryNodes", "--cpuset-mems")}


def allow(process: Process, what: str, ids: Iterable[int]) -> str:
    """Let a process's cgroup use these `cpus` or `mems`."""
    value = format_list(ids)
    unit_key, engine_option = _KEYS[what]
    for name in reversed(process.cgroup.split("/")):
        if scope := _SCOPE.fullmatch(name):
            return f"{_ENGINES[scope[1]]} update {engine_option}={value} {scope[2]}"
        if _UNIT.fullmatch(name):
            user = " --user" if "/user@" in process.cgroup else ""
            return f"systemctl{user} set-property --runtime {shell_line([name])} {unit_key}={value}"
    return f"echo {value} > {shell_line([f'{process.cgroup}/cpuset.{what}'])}"
