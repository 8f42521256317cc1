"""What is in a trace: the facts `nprof info` shows."""

from typing import Any

from .reader import Trace

SCHEMA = "numaplan/info/1"
PART_FACTS = ("skipped", "taken", "on_signal", "marked")
MOST_REGIONS = 16  # that are told, those with most samples
JOB_FACTS = ("rank", "ranks", "local_rank", "host", "job")


def describe(trace: Trace) -> dict[str, Any]:
    """The content of `nprof info --json` (schema numaplan/info/1); counts are of samples, times in ns."""
    meta = trace.meta
    by_region = trace.rows(
        "SELECT coalesce(r.kind, 'unknown'), count(*) FROM samples s LEFT JOIN regions r USING (region)"
        " GROUP BY 1 ORDER BY 2 DESC, 1"
    )
    threads = trace.rows(
        "SELECT t.thread, t.process, t.path, t.name, t.tid, count(s.thread) FROM threads t"
        " LEFT JOIN samples s USING (thread) GROUP BY ALL ORDER BY t.thread"
    )
    most = trace.rows(
        "SELECT r.region, r.kind, r.name, r.bytes, count(*) FROM samples s JOIN regions r USING (region)"
        f" GROUP BY ALL ORDER BY 5 DESC, 1 LIMIT {MOST_REGIONS}"
    )
    (losses,) = trace.rows("SELECT coalesce(sum(events), 0)::BIGINT FROM losses")[0]
    (unattributed,) = trace.rows("SELECT count(*) FROM samples WHERE thread < 0")[0]
    return {
        "schema": SCHEMA,
        "app": {"argv": trace.argv, "build_id": meta.get("build_id", "")},
        "threads": len(threads),
        "samples": sample_counts(trace, "event"),
        "losses": losses,
        "duration_ns": int(meta.get("duration_ns", "0")),
        "clock": "accesses" if meta.get("clock") == "accesses" else "time",
        "host_seconds": float(meta.get("emulate.host_seconds", "0")),
        "backend": meta.get("backend", ""),
        "backend_why": meta.get("backend_why", ""),
        "period": int(meta.get("period", "0")),
        "footprint": int(meta.get("footprint", "0")),
        "for_footprint": int(meta.get("for_footprint", "0")),
        "llc_sizes": meta.get("llc_sizes", ""),
        "for_llc": int(meta.get("for_llc", "0")),
        "part": {name: meta[name] for name in PART_FACTS if name in meta},
        "messages": _messages(trace),
        "job": {name: meta[name] for name in JOB_FACTS if name in meta},
        "exit_code": int(meta["exit_code"]) if "exit_code" in meta else None,
        "version": meta.get("version", ""),
        "machine": {
            "name": trace.machine.name,
            "nodes": len(trace.machine.nodes),
            "cpus": len(trace.machine.cpus),
        },
        "levels": sample_counts(trace, "level"),
        "region_kinds": dict(by_region),
        "regions": [
            {"kind": kind, "name": name, "title": title(trace, region, kind, name, size), "samples": samples}
            for region, kind, name, size, samples in most
        ],
        "unattributed": unattributed,
        "per_thread": [
            {"thread": thread, "process": process, "path": path, "name": name, "tid": tid, "samples": samples}
            for thread, process, path, name, tid, samples in threads
        ],
    }


def title(trace: Trace, region: int, kind: str, name: str, size: int) -> str:
    """What a region is called where people read: as the source does, where that is known."""
    source = trace.source_names.get(region)
    return source.title(kind, size) if source else f"{kind} {name}"


def _messages(trace: Trace) -> dict[str, Any]:
    """How messages between ranks were recorded, and bytes and messages of each kind; empty: they were not."""
    if not trace.meta.get("messages"):
        return {}
    found = trace.rows(
        "SELECT kind::VARCHAR, sum(bytes)::DOUBLE, sum(count)::DOUBLE FROM messages GROUP BY kind"
        " ORDER BY messages.kind"
    )
    kinds = {kind: {"bytes": int(size), "count": int(count)} for kind, size, count in found}
    return {"by": trace.meta["messages"], "kinds": kinds}


def sample_counts(trace: Trace, column: str) -> dict[str, int]:
    """How many samples there are of each `event` or `level`, in the order of their codes."""
    named = f"coalesce({column}::VARCHAR, 'unknown')"
    return dict(trace.rows(f"SELECT {named}, count(*) FROM samples GROUP BY ALL ORDER BY min({column})"))
