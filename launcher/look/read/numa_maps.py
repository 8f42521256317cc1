"""/proc/PID/numa_maps: a process's memory by policy, kind and node."""

import re
from collections.abc import Iterable

from .model import Memory, Part

_LINE = re.compile(r"[0-9a-f]+ (prefer \(many\)\S*|weighted interleave\S*|\S+)(.*)")
_NODE = re.compile(r" N(\d+)=(\d+)")
_PAGE = re.compile(r" kernelpagesize_kB=(\d+)")
_FILE = re.compile(r" file=(\S+)")
_SHARED = ("/dev/shm/", "/SYSV", "/memfd:", "/dev/zero")
PLACING = ("libnuma", "libmemkind", "libhwloc", "enforce.so")  # libraries that bind memory


def read_numa_maps(lines: Iterable[str]) -> Memory:
    """The memory that these lines tell of; page cache of files is a kind of its own."""
    parts: dict[tuple[str, str], dict[int, int]] = {}
    libraries: dict[str, None] = {}
    huge_page = 0
    for line in lines:
        found = _LINE.match(line)
        if not found:
            continue
        policy, rest = found.groups()
        size = _PAGE.search(rest)
        page = int(size[1]) << 10 if size else 4096
        file = _FILE.search(rest)
        path = file[1] if file else ""
        if any(name in path for name in PLACING):
            libraries[path.rpartition("/")[2]] = None
        kind = _kind(rest, path)
        huge_page = page if kind == "huge" else huge_page
        nodes = parts.setdefault((policy, kind), {})
        for node, pages in _NODE.findall(rest):
            nodes[int(node)] = nodes.get(int(node), 0) + int(pages) * page
    kept = tuple(Part(policy, kind, nodes) for (policy, kind), nodes in parts.items() if nodes)
    return Memory(kept, tuple(libraries), huge_page)


def _kind(rest: str, path: str) -> str:
    if " huge" in rest:
        return "huge"
    if path.startswith(_SHARED):
        return "shared"
    if path:  # pages that were written are the process's own: variables of a program or a library
        return "anon" if " anon=" in rest and " mapped=" not in rest else "file"
    if " stack" in rest:
        return "stack"
    return "heap" if " heap" in rest else "anon"
