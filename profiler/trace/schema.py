"""The tables of a trace.db, and the codes of its enumerated columns.

A trace is one DuckDB file. Times are ns from the start of the recording. `samples.event` and `samples.level`
are DuckDB enums whose codes are the positions in EVENTS and LEVELS; recording backends hand over codes.
"""

# 1: cpu and node had 16 bits, which readers then relied on; 2: samples had no `reach`; 3: no `transfers`;
# 4: no `page_use`; 5: no `messages`; 6: no `names`, `fields`, `chains` and `code`; 7: no `calls`;
# 8: page_use had no `node` and `local`; 9: no `running`.
SCHEMA_VERSION = "10"
READABLE_VERSIONS = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "10")

EVENTS = ("load", "store", "llc_miss_local", "llc_miss_remote", "fault", "hint_fault")
LEVELS = (
    "unknown",
    "l1",
    "lfb",
    "l2",
    "l3",
    "local_dram",
    "remote_dram",
    "remote_cache",
    "pmem",
    "cxl",
    "io",
    "uncached",
)
# sent: what the program sent to one rank; put, get: what it wrote into another rank's memory, and read of it;
# collective: the messages that its collective operations were made of; modelled: those that a model makes of
# them.
MESSAGE_KINDS = ("sent", "put", "get", "collective", "modelled")
MOST_RANKS = 1 << 24
EVENT_CODE = {name: code for code, name in enumerate(EVENTS)}
LEVEL_CODE = {name: code for code, name in enumerate(LEVELS)}

# Column -> DuckDB type. -1 in an integer column stands for "not known".
# transfers: lines that `reader` took from `writer`, another thread, in a stretch of time; all of them, where
# every access was seen, and none else.
# page_use: how often a thread used a page in a stretch of time, all of it as above; region: -2 where several
# have a part of the page; addr: of the page; missed: accesses that no cache answered; node: where the page
# was; local: whether these accesses were by cpus of that node (1, 0).
# messages: of `rank` to `peer`, both of MPI_COMM_WORLD, in the whole run; `get`: the bytes come from there.
# names: what the source calls a region: a variable (its name, type, and bytes of an item of it, or of the
# block that it stands for), and where the block is made, or the variable declared; empty, 0, -1: not known.
# fields: of one item of a layout, or all of a region whose item is 0; item: bytes of one item of the field
# where that is an array, else 0.
# chains: the calls above an allocation, depth 0 the innermost; what was inlined into a function has its depth
# code: the line that made an instruction that samples are of, or a call.
# calls: `ip` is in the instruction of a call, and `caller` the call that was under way when it was made;
# samples.call: the innermost under way.
# running: the threads of a process (in the lab, of all) that could run at a time: a look has one time.
# samples.reach: how many of the caches in `llc_sizes` of meta miss the access, from the smallest on.
TABLES: dict[str, dict[str, str]] = {
    "meta": {"key": "VARCHAR", "value": "VARCHAR"},
    "machine": {"json": "VARCHAR"},
    "threads": {
        "thread": "INTEGER",
        "process": "VARCHAR",
        "path": "VARCHAR",
        "tid": "INTEGER",
        "pid": "INTEGER",
        "name": "VARCHAR",
        "start_ns": "BIGINT",
        "end_ns": "BIGINT",
    },
    "regions": {
        "region": "INTEGER",
        "process": "VARCHAR",
        "kind": "VARCHAR",
        "name": "VARCHAR",
        "build_id": "VARCHAR",
        "start_addr": "UBIGINT",
        "bytes": "UBIGINT",
        "thread": "INTEGER",
        "sequence": "INTEGER",
        "start_ns": "BIGINT",
        "end_ns": "BIGINT",
    },
    "samples": {
        "time_ns": "BIGINT",
        "thread": "INTEGER",
        "cpu": "INTEGER",
        "node": "INTEGER",
        "addr": "UBIGINT",
        "phys_addr": "UBIGINT",
        "ip": "UBIGINT",
        "event": "event_kind",
        "is_write": "BOOLEAN",
        "level": "memory_level",
        "latency": "INTEGER",
        "region": "INTEGER",
        "reach": "TINYINT",
        "call": "INTEGER",
    },
    "counters": {"time_ns": "BIGINT", "thread": "INTEGER", "event": "VARCHAR", "value": "DOUBLE"},
    "losses": {"time_ns": "BIGINT", "events": "BIGINT"},
    "transfers": {
        "start_ns": "BIGINT",
        "end_ns": "BIGINT",
        "writer": "INTEGER",
        "reader": "INTEGER",
        "region": "INTEGER",
        "events": "BIGINT",
    },
    "page_use": {
        "start_ns": "BIGINT",
        "end_ns": "BIGINT",
        "first_ns": "BIGINT",
        "thread": "INTEGER",
        "region": "INTEGER",
        "addr": "UBIGINT",
        "loads": "BIGINT",
        "stores": "BIGINT",
        "missed": "BIGINT",
        "node": "INTEGER",
        "local": "TINYINT",
    },
    "messages": {
        "rank": "INTEGER",
        "peer": "INTEGER",
        "kind": "message_kind",
        "bytes": "BIGINT",
        "count": "BIGINT",
        "thread": "INTEGER",
    },
    "names": {
        "region": "INTEGER",
        "chain": "INTEGER",
        "name": "VARCHAR",
        "type": "VARCHAR",
        "path": "VARCHAR",
        "line": "INTEGER",
        "function": "VARCHAR",
        "item": "BIGINT",
        "layout": "INTEGER",
    },
    "fields": {
        "layout": "INTEGER",
        "start": "BIGINT",
        "bytes": "BIGINT",
        "name": "VARCHAR",
        "item": "BIGINT",
    },
    "chains": {
        "chain": "INTEGER",
        "depth": "INTEGER",
        "site": "VARCHAR",
        "function": "VARCHAR",
        "path": "VARCHAR",
        "line": "INTEGER",
    },
    "code": {
        "process": "VARCHAR",
        "ip": "UBIGINT",
        "function": "VARCHAR",
        "path": "VARCHAR",
        "line": "INTEGER",
    },
    "calls": {
        "call": "INTEGER",
        "caller": "INTEGER",
        "process": "VARCHAR",
        "ip": "UBIGINT",
    },
    "running": {"time_ns": "BIGINT", "thread": "INTEGER"},
}
NAME_TABLES = ("names", "fields", "chains", "code")
ADDED_TABLES = (
    "transfers",
    "page_use",
    "messages",
    *NAME_TABLES,
    "calls",
    "running",
)  # of which traces of earlier versions have none

# Columns of samples that a writer need not give, -1 then -> versions of the schema that had none.
ADDED = {"reach": ("1", "2"), "call": ("1", "2", "3", "4", "5", "6", "7")}
ADDED_TO_USE = ("node", "local")  # columns of page_use that traces of earlier versions lack: -1 then
COLUMNS = TABLES["samples"]
TIME = "time_ns"
NUMBERS = {"BIGINT": "int64", "INTEGER": "int32", "UBIGINT": "uint64", "TINYINT": "int8"}
ENUMS = {"event_kind": EVENTS, "memory_level": LEVELS, "message_kind": MESSAGE_KINDS}


def array_type(kind: str) -> str:
    """The numpy type of a column's values of a DuckDB type; of an enum's codes."""
    return "bool" if kind == "BOOLEAN" else NUMBERS.get(kind, "uint8")
