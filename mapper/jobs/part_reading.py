"""Read a part: whatever its files hold, it is checked, and what cannot be is told in one line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from numaplan.analyzer import RESTACKED, PageCounts
from numaplan.common import BAD_JSON, UsageError
from numaplan.machine import Machine
from numaplan.profiler import RegionKey

from .part import COUNTED, KEPT, MATRICES, NEEDED, PAGE_EXTRAS, PAGE_ROWS, Messages, Part, PartFacts
from .part_tables import AGAIN, FOLDER, SCHEMA, SCHEMAS, TABLES

_KEY = ("kind", "name", "bytes", "build_id", "process", "thread", "sequence")
_LARGEST = 1 << 62


def read_part(folder: Path, tables: Sequence[str] = tuple(TABLES)) -> Part:
    """A part; raises UsageError naming the file that is missing, damaged, of another version or impossible,
    or the folder that is another rank's.

    tables: those that are needed; what the others have is empty.
    """
    threads, meta = _read(folder, "threads")
    try:
        facts = msgspec.json.decode(meta.get(b"numaplan.facts", b""), type=PartFacts)
    except BAD_JSON as error:
        raise _bad(folder, "threads", f"its facts: {error}") from error
    named = FOLDER.fullmatch(folder.name)
    if named and int(named[1]) != facts.rank:
        raise UsageError(
            f"{folder}: holds the part of rank {facts.rank}", "give each part the folder of its rank"
        )
    machine = Machine.from_json(meta.get(b"numaplan.machine", b""), f"{folder}/threads.parquet (machine)")
    rest = {name: _read(folder, name)[0] for name in tables if name != "threads" and _expected(name, facts)}
    try:
        return _part(facts, machine, threads, rest)
    except (ValueError, IndexError, TypeError, msgspec.ValidationError, pa.ArrowException) as error:
        raise UsageError(f"{folder}: {error}", AGAIN) from error


def _expected(name: str, facts: PartFacts) -> bool:
    return {"pages": facts.pages, "regions": facts.pages, "messages": facts.messages}.get(name, True)


def _bad(folder: Path, name: str, what: str) -> UsageError:
    return UsageError(f"{folder / name}.parquet: {what}", AGAIN)


def _read(folder: Path, name: str) -> tuple[dict[str, Any], Mapping[bytes, bytes]]:
    """The columns of a table as arrays (lists, of words), None where all are null; and its metadata."""
    path = folder / f"{name}.parquet"
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            meta = schema.metadata or {}
            found = meta.get(b"numaplan", b"").decode(errors="replace")
            if found != SCHEMA:
                what = found[:80] or "no part of a job"
                raise UsageError(f"{path}: {what}", f"this version reads {SCHEMA}")
            wanted = SCHEMAS[name]
            if not schema.remove_metadata().equals(wanted):
                raise _bad(folder, name, "its columns are not those of a part")
            table = file.read(use_threads=False)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise _bad(folder, name, str(error).partition("\n")[0]) from error
    return {column: _values(table.column(column)) for column in wanted.names}, meta


def _values(column: pa.ChunkedArray) -> Any:
    if pa.types.is_string(column.type) or pa.types.is_list(column.type) or pa.types.is_boolean(column.type):
        return column.to_pylist()
    if column.null_count:
        return None if column.null_count == len(column) else column.to_pylist()
    return column.to_numpy()


def _part(
    facts: PartFacts, machine: Machine, threads: dict[str, Any], rest: dict[str, dict[str, Any]]
) -> Part:
    count, own = len(threads["process"]), facts.own
    if not 1 <= own <= count:
        raise ValueError(f"{own} of {count} threads are its own")
    known: dict[str, Any] = {
        name: None if column is None else column[:own] for name, column in threads.items()
    }
    names, words = known["name"], [*threads["process"], *threads["path"], *known["name"]]
    if any(word is None for word in words):
        raise ValueError("threads without a name")
    numbers = {name: _numbers(known[name], name) for name in ("load", "accesses")}
    beyond, node = known["beyond_first_cache"], known["node"]
    phases = rest.get("phases")
    return Part(
        facts=facts,
        machine=machine,
        threads=list(zip(threads["process"], threads["path"], strict=True)),
        loads=numbers["load"],
        accesses=numbers["accesses"],
        lives=list(zip(_whole(known["start_ns"]), _whole(known["end_ns"]), strict=True)),
        names=names,
        keeps=[bool(keeps) for keeps in known["keeps"]],
        seen_on=[] if _unknown(node) else _whole(node),
        matrices=_matrices(facts, rest["pairs"], count) if "pairs" in rest else {},
        **_phases(phases, own),
        beyond=None if _unknown(beyond) else _numbers(beyond, "beyond_first_cache"),
        missed=_missed(known, facts),
        domain=np.array(_whole(known["cache"]), np.int64) if facts.cache_sizes else None,
        pages=_pages(facts, rest["regions"], rest["pages"], count) if "pages" in rest else None,
        messages=_messages(rest["messages"], own) if "messages" in rest else None,
    )


def _unknown(values: Any) -> bool:
    return values is None or any(value is None for value in values)


def _whole(values: Any) -> list[int]:
    if _unknown(values):
        raise ValueError("a number is missing in threads")
    return [int(value) for value in values]


def _numbers(values: Any, name: str, least: Any = 0.0) -> Any:
    found = np.array([] if values is None else list(values), np.float64)
    if values is None or not ((found >= least) & (found < np.inf)).all():
        raise ValueError(f"{name} that cannot be")
    return found


def _missed(known: dict[str, Any], facts: PartFacts) -> Any:
    if not facts.cache_sizes:
        return None
    found = np.array(known["cache_misses"], np.float64)
    if found.shape != (facts.own, len(facts.cache_sizes)) or not np.isfinite(found).all():
        raise ValueError("cache_misses that cannot be")
    return found


def _inside(values: Any, least: int, end: int, what: str) -> Any:
    found = np.asarray([] if values is None else values, np.int64)
    if len(found) and not (found.min() >= least and found.max() < end):
        raise ValueError(f"{what} that does not exist")
    return found


def _matrices(facts: PartFacts, pairs: dict[str, Any], count: int) -> dict[str, Any]:
    if not set(facts.matrices) <= set(MATRICES) or not set(NEEDED) <= set(facts.matrices):
        raise ValueError(f"matrices {', '.join(facts.matrices)[:80]}")
    answer = {name: np.zeros((facts.own, count)) for name in facts.matrices}
    if not pairs["kind"]:
        return answer
    kinds = np.array(pairs["kind"], object)
    rows = _inside(pairs["thread"], 0, facts.own, "pairs: a thread")
    columns = _inside(pairs["other"], 0, count, "pairs: a thread")
    least = np.where(kinds == RESTACKED, -np.finfo(np.float64).max, 0.0)
    values = _numbers(pairs["value"], "pairs: values", least)
    for name, matrix in answer.items():
        chosen = kinds == name
        matrix[rows[chosen], columns[chosen]] = values[chosen]
    if facts.use_near < 1 and KEPT not in answer:
        answer[KEPT] = answer["lines"] * (1 - max(facts.use_near, 0.0))
    return answer


def _phases(phases: dict[str, Any] | None, own: int) -> dict[str, Any]:
    if phases is None or phases["load"] is None or not len(phases["load"]):
        empty = np.zeros(0)
        return {"phases": np.zeros((0, own)), "phase_rates": empty, "phase_ends": empty.astype(np.int64)}
    loads = _numbers(phases["load"], "phases: loads")
    if len(loads) % own:
        raise ValueError(f"{len(loads)} loads by phase of {own} threads")
    rates = _numbers(phases["rate"], "phases: rates")[::own]
    ends = _inside(phases["end_ns"], 0, _LARGEST, "phases: an end")[::own]
    if (np.diff(ends) < 0).any():
        raise ValueError("phases that are not in order")
    return {"phases": loads.reshape(-1, own), "phase_rates": rates, "phase_ends": ends}


def _pages(facts: PartFacts, regions: dict[str, Any], pages: dict[str, Any], count: int) -> PageCounts:
    columns: dict[str, Any] = {}
    for name in (*PAGE_ROWS, *PAGE_EXTRAS):
        column = pages[name]
        if name in facts.page_columns:
            kind = np.int64 if name in facts.whole or name not in COUNTED else np.float64
            columns[name] = np.asarray([] if column is None else column).astype(kind)
    rows = len(columns.get("page", ()))
    if not set(PAGE_ROWS[:5]) <= set(columns) or any(len(column) != rows for column in columns.values()):
        raise ValueError("pages without what they are counted by")
    for name in COUNTED:
        _numbers(columns.get(name, ()), f"pages: {name}")
    keys = _keys(regions)
    _inside(columns["region"], 0, len(keys), "pages: a region")
    _inside(columns["page"], 0, 1 << 52, "pages: a page")
    _inside(columns["thread"], 0, facts.own, "pages: a thread")
    _inside(columns.get("toucher", ()), -1, count, "pages: a thread")
    teams = None if facts.teams is None else np.array(facts.teams, np.int64)
    _inside(columns.get("phase", ()), 0, _LARGEST if teams is None else len(teams), "pages: a phase")
    lives = [regions[name] for name in ("start_ns", "end_ns")]
    known: dict[str, Any] = {name: columns.get(name) for name in (*PAGE_ROWS, *PAGE_EXTRAS)}
    return PageCounts(
        **known,
        regions=keys,
        teams=teams,
        period=facts.period,
        lives=None if any(_unknown(life) for life in lives) else np.stack(lives, axis=1),
        exact=facts.exact,
        sources={key: name for key, name in zip(keys, regions["source"], strict=True) if name},
    )


def _keys(regions: dict[str, Any]) -> list[RegionKey]:
    if not regions["kind"]:
        return []
    words = zip(*([_plain(value) for value in regions[word]] for word in _KEY), strict=True)
    return [msgspec.convert(dict(zip(_KEY, row, strict=True)), RegionKey) for row in words]


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _messages(found: dict[str, Any], own: int) -> Messages:
    kinds = found["kind"]
    sizes = {name: _inside(found[name], 0, _LARGEST, f"messages: {name}") for name in ("bytes", "count")}
    return Messages(
        peer=_inside(found["peer"], 0, 1 << 24, "messages: a rank"),
        kind=kinds,
        **sizes,
        thread=_inside(found["thread"], -1, own, "messages: a thread"),
    )
