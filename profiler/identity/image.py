"""One process image's log made into threads, modules and a name for every call site."""

import bisect
import struct
from dataclasses import dataclass, field, replace

from . import log as events
from .log import ImageLog, Record
from .records import ModuleRecord, RegionRecord, Segment, ThreadRecord, inherited_modules

INT32 = (1 << 31) - 1
MAX_PATH = 4096  # characters of a creation path; deeper chains are cut off


@dataclass
class Image:
    """What one image's log says; paths: creation path by thread number; stacks: (start, bytes) likewise;
    chains: return addresses by number.
    """

    log: ImageLog
    process: str
    argv: tuple[str, ...] = ()
    executable: str = ""
    build_id: str = ""
    end_ns: int = -1
    paths: dict[int, str] = field(default_factory=dict)
    stacks: dict[int, tuple[int, int]] = field(default_factory=dict)
    chains: dict[int, tuple[int, ...]] = field(default_factory=dict)
    threads: list[ThreadRecord] = field(default_factory=list)
    modules: list[ModuleRecord] = field(default_factory=list)
    regions: list[RegionRecord] = field(default_factory=list)
    _sites: dict[int, tuple[int, int, str]] = field(default_factory=dict)

    def site(self, address: int, time_ns: int) -> str:
        """`module+0xOFFSET` of a code address, or `unknown+0xADDRESS` outside all modules."""
        known = self._sites.get(address)
        if known is None or not known[0] <= time_ns <= known[1]:
            known = self._sites[address] = self._find_site(address, time_ns)
        return known[2]

    def _find_site(self, address: int, time_ns: int) -> tuple[int, int, str]:
        """The name and the times from and to which it holds."""
        starts = self._spans()
        at = bisect.bisect_right(starts[0], address) - 1
        for index in range(at, max(at - 4, -1), -1):
            start, end, module = starts[1][index]
            if start <= address < end and (module.end_ns < 0 or time_ns <= module.end_ns):
                until = module.end_ns if module.end_ns >= 0 else events.LAST_TIME
                return module.start_ns, until, f"{module.name}+{address - module.bias:#x}"
        return time_ns, time_ns, f"unknown+{address:#x}"

    def _spans(self) -> tuple[list[int], list[tuple[int, int, ModuleRecord]]]:
        if not hasattr(self, "_span_cache"):
            spans = sorted(
                (
                    (segment.start_addr, segment.start_addr + segment.bytes, module)
                    for module in self.modules
                    for segment in module.segments
                ),
                key=lambda span: span[0],
            )
            self._span_cache = ([span[0] for span in spans], spans)
        return self._span_cache


def read_image(log: ImageLog, process: str, parent: Image | None) -> Image:
    """What a log says, on top of what a forked image has of its parent."""
    image = Image(log, process)
    if parent is not None:
        image.argv, image.executable, image.build_id = parent.argv, parent.executable, parent.build_id
        image.modules = inherited_modules(parent.modules, process, log.pid, log.fork_ns)
    for record in log.records:
        if record.kind == events.PROCESS:
            words = [word.decode(errors="replace") for word in record.text.split(b"\0")]
            image.executable, image.argv = words[0], tuple(words[1:-1])
        elif record.kind == events.CHAIN:
            sites = record.text[: len(record.text) // 8 * 8]
            image.chains[record.a] = struct.unpack(f"<{len(sites) // 8}Q", sites)
    _read_modules(image)
    _read_threads(image)
    return image


def _read_threads(image: Image) -> None:
    """Threads in order of birth; a thread whose creator's record is lost has no path and is left out."""
    pid = image.log.pid
    rows: dict[int, ThreadRecord] = {0: ThreadRecord(image.process, "0", pid, pid, "", 0, -1)}
    image.paths = {0: "0"}
    handles: dict[int, int] = {}
    births = [record for record in image.log.records if record.kind == events.THREAD_START]
    for record in sorted(births, key=lambda record: record.thread):
        parent, child = record.b >> 32, record.b & 0xFFFFFFFF
        path = "0" if record.thread == 0 else _child_path(image.paths, parent, child)
        if not path:
            continue
        image.paths[record.thread] = path
        rows[record.thread] = ThreadRecord(image.process, path, pid, record.a & INT32, "", record.time_ns, -1)
        if record.e:
            image.stacks[record.thread] = (record.d, record.e)
        handles[record.c] = record.thread
    for record in image.log.records:
        if record.kind == events.THREAD_END and record.thread in rows:
            row = rows[record.thread]
            rows[record.thread] = replace(row, name=_name(record) or row.name, end_ns=record.time_ns)
        elif record.kind == events.THREAD_NAME and record.d in handles:
            rows[handles[record.d]] = replace(rows[handles[record.d]], name=_name(record))
    image.threads = list(rows.values())


def _child_path(paths: dict[int, str], parent: int, child: int) -> str:
    path = paths.get(parent)
    return f"{path}.{child}" if path and child and len(path) < MAX_PATH else ""


def _name(record: Record) -> str:
    raw = record.b.to_bytes(8, "little") + record.c.to_bytes(8, "little")
    return raw.partition(b"\0")[0].decode(errors="replace")


def _read_modules(image: Image) -> None:
    loaded: dict[int, int] = {}
    inherited_count = len(image.modules)
    for index in range(inherited_count):
        loaded[image.modules[index].bias] = index
    for record in image.log.records:
        if record.kind == events.MODULE:
            cut = min(record.e, 20)
            build_id, path = record.text[:cut].hex(), record.text[cut:].decode(errors="replace")
            # Loaded at some time since the scan before; at the first scan, since the start.
            start = min(record.c, record.time_ns) or image.log.start_ns
            module = ModuleRecord(
                image.process, image.log.pid, path, build_id, record.b, bool(record.a), (), start, -1
            )
            loaded[record.b] = len(image.modules)
            image.modules.append(module)
            if record.a:
                image.build_id = build_id
        elif record.kind == events.SEGMENT and record.b in loaded:
            index = loaded[record.b]
            module = image.modules[index]
            segment = Segment(record.c, record.d, record.a)
            image.modules[index] = replace(module, segments=(*module.segments, segment))
        elif record.kind == events.MODULE_END and record.b in loaded:
            index = loaded.pop(record.b)
            image.modules[index] = replace(image.modules[index], end_ns=record.time_ns)
