"""Which code instructions are of: module and offset, and the source's names where they are known."""

from bisect import bisect_right
from typing import NamedTuple

from ..trace.reader import Trace


class Module(NamedTuple):
    """A program or library where a process has it."""

    name: str
    build_id: str
    start: int
    end: int


class Place(NamedTuple):
    """An instruction: of a module, None: of none that is known; name: the function, or module and offset."""

    name: str
    address: int
    module: Module | None = None
    path: str = ""
    line: int = 0


class CodePlaces:
    """Of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._modules: dict[str, list[Module]] = {}
        spans: dict[tuple[str, str, str], tuple[int, int]] = {}
        for row in trace.region_rows:
            if row.kind == "text":
                key = row.process, row.name.partition(":")[0], row.build_id
                start, end = spans.get(key, (row.start_addr, 0))
                spans[key] = min(start, row.start_addr), max(end, row.start_addr + row.bytes)
        for (process, name, build_id), (start, end) in sorted(spans.items(), key=lambda item: item[1]):
            self._modules.setdefault(process, []).append(Module(name, build_id, start, end))
        self._lines: dict[tuple[str, int], tuple[str, str, int]] = {
            (process, int(ip)): (function, path, line)
            for process, ip, function, path, line in trace.rows(
                "SELECT process, ip, function, path, line FROM code"
            )
        }

    def find(self, process: str, ip: int) -> Place:
        """The instruction at an address of a process."""
        modules = self._modules.get(process, [])
        at = bisect_right(modules, ip, key=lambda module: module.start) - 1
        if at < 0 or ip >= modules[at].end:
            return Place(f"{ip:#x}" if ip else "unknown code", ip)
        module = modules[at]
        function, path, line = self._lines.get((process, ip), ("", "", 0))
        return Place(function or f"{module.name}+{ip - module.start:#x}", ip, module, path, line)
