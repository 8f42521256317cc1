"""What enforce.so says it did: the affinity that each thread had, where each planned region's pages were."""

from pathlib import Path

from numaplan.launcher.seen import Observed, SeenRegion, SeenThread
from numaplan.launcher.traced import cpus_of, read_traced
from numaplan.profiler.identity import Record, read_control, read_image, read_logs

__all__ = ["Observed", "SeenRegion", "SeenThread", "read_observed"]

# Record kinds and fields: native/enforce/enforce.h.
_APPLIED_THREAD, _APPLIED_REGION, _REGION_PAGES, _BAD_FORM, _NEXT_TOUCHED = range(32, 37)
_NO_NODE = 0xFFFF


def read_observed(workdir: Path) -> Observed:
    """Everything that was logged by the library or the tracer; nothing when neither was at work."""
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
                _take_thread(
                    observed, SeenThread(process, path, tids.get(path, log.pid), pid=log.pid), record
                )
            elif record.kind == _APPLIED_REGION:
                region = observed.regions[record.b]
                region.bytes, region.error = record.d, region.error or record.a
                region.address, region.pid = record.c, log.pid
            elif record.kind == _REGION_PAGES:
                pair = (_node(record.a >> 16), _node(record.a & 0xFFFF))
                observed.regions[record.b].pages[pair] += record.c
                if record.d:
                    observed.full.add(pair[0])
            elif record.kind == _NEXT_TOUCHED:
                marked, moved, stayed = observed.next_touch
                observed.next_touch = (marked + record.b, moved + record.d, stayed + record.e)
            elif record.kind == _BAD_FORM:
                observed.bad_form = True
    read_traced(workdir, observed)
    return observed


def _take_thread(observed: Observed, fresh: SeenThread, record: Record) -> None:
    thread = observed.threads.setdefault((fresh.process, fresh.path), fresh)
    thread.planned = thread.planned or bool(record.c)
    thread.error = thread.error or record.a
    cpus = cpus_of(record.text)
    if cpus:  # at the end of a thread that is already gone there is nothing to read
        thread.cpus = cpus


def _node(value: int) -> int:
    return -1 if value == _NO_NODE else value
