"""What enforce.so says it did: the affinity that each thread had, where each planned region's pages were."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from numaplan.profiler.identity import Record, read_control, read_image, read_logs

# Record kinds and fields: native/enforce/enforce.h.
_APPLIED_THREAD, _APPLIED_REGION, _REGION_PAGES, _BAD_FORM = range(32, 36)
_NO_NODE = 0xFFFF


@dataclass
class SeenThread:
    """A thread: cpus as last read back (empty: not read), if the plan names it, errno of binding."""

    process: str
    path: str
    tid: int
    cpus: tuple[int, ...] = ()
    planned: bool = False
    error: int = 0


@dataclass
class SeenRegion:
    """A planned region that appeared: size, errno of placing, bytes by (node of the plan, node found).

    -1 stands for a node not planned, or a page not touched.
    """

    bytes: int = 0
    error: int = 0
    pages: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))


@dataclass
class Observed:
    """A run as the library saw it; regions by their row in the compact form."""

    processes: list[str] = field(default_factory=list)
    threads: dict[tuple[str, str], SeenThread] = field(default_factory=dict)
    regions: dict[int, SeenRegion] = field(default_factory=lambda: defaultdict(SeenRegion))
    bad_form: bool = False
    lost: int = 0


def read_observed(workdir: Path) -> Observed:
    """Everything that was logged; nothing when the library was never loaded."""
    entries = read_control(workdir)
    observed = Observed([entry.name for entry in entries])
    for log in read_logs(workdir):
        if log.entry >= len(entries):
            continue
        process = entries[log.entry].name
        image = read_image(log, process, None)
        tids = {thread.path: thread.tid for thread in image.threads}
        observed.lost += log.lost
        for record in log.records:
            if record.kind == _APPLIED_THREAD and record.thread in image.paths:
                path = image.paths[record.thread]
                _take_thread(observed, SeenThread(process, path, tids.get(path, log.pid)), record)
            elif record.kind == _APPLIED_REGION:
                region = observed.regions[record.b]
                region.bytes, region.error = record.d, region.error or record.a
            elif record.kind == _REGION_PAGES:
                pair = (_node(record.a >> 16), _node(record.a & 0xFFFF))
                observed.regions[record.b].pages[pair] += record.c
            elif record.kind == _BAD_FORM:
                observed.bad_form = True
    return observed


def _take_thread(observed: Observed, fresh: SeenThread, record: Record) -> None:
    thread = observed.threads.setdefault((fresh.process, fresh.path), fresh)
    thread.planned = thread.planned or bool(record.c)
    thread.error = thread.error or record.a
    cpus = _cpus(record.text)
    if cpus:  # at the end of a thread that is already gone there is nothing to read
        thread.cpus = cpus


def _cpus(mask: bytes) -> tuple[int, ...]:
    return tuple(8 * byte + bit for byte, value in enumerate(mask) for bit in range(8) if value >> bit & 1)


def _node(value: int) -> int:
    return -1 if value == _NO_NODE else value
