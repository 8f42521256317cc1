"""The plan table that enforce.so and the tracer read (native/plan_table): fixed-size rows, hashed names."""

import os
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET

from numaplan.common import native_part
from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanRegion, PlanThread
from numaplan.profiler import elf_facts, executable_of

from .process_memory import memory_nodes
from .unplanned import first_in_lanes, floating_cpus, pool_cpus, pool_of_makers, processes_of

LIBRARY = native_part("launcher", "enforce.so")

MAGIC = b"NUMAPLPF"
VERSION = 5
KINDS = {"heap": 1, "mmap": 2, "file": 3, "static": 4}
POLICIES = {"bind": 1, "preferred": 2, "interleave": 3, "next-touch": 4}

_HEADER = struct.Struct("<8s6IQIII12x")
_THREAD = struct.Struct("<QQIIiIII")
_REGION = struct.Struct("<QQQQQQIIIHBB")
_RUN = struct.Struct("<QQII")
_SIZES = struct.Struct("<QQ")
_PROCESS = struct.Struct("<QQQII")

_MOST_BLOCKS = (1 << 32) - 1  # of a thread, as the library counts them
_MOST_CHILDREN = _MOST_BLOCKS  # of a process, likewise
_COMM = 15  # bytes of a program's name that the kernel keeps
_MOST_BYTES = 1 << 56  # of a region: more than any processor addresses
_FNV_START, _FNV_PRIME, _MASK = 14695981039346656037, 1099511628211, (1 << 64) - 1

# Where static data is: (module, object) -> (address in the file, build id in hex), None: not found.
Locate = Callable[[str, str], tuple[int, str] | None]


class PlanTable(msgspec.Struct, frozen=True):
    """Its bytes; regions[i]: the plan's region of row i, rules last; skipped: those without a row.

    processes: names by their hashes; spread: of processes into which nothing can be loaded, the nodes for
    all their memory; first: the cpus on which a process that loads the library is best started.
    """

    data: bytes
    regions: tuple[PlanRegion, ...]
    skipped: tuple[tuple[PlanRegion, str], ...]
    spread: Mapping[str, tuple[int, ...]] = {}
    first: Mapping[str, frozenset[int]] = {}
    processes: Mapping[int, str] = {}


def name_hash(text: str) -> int:
    """FNV-1a, 64 bits, of the text's bytes: how the library knows names, paths and processes."""
    value = _FNV_START
    for byte in text.encode():
        value = (value ^ byte) * _FNV_PRIME & _MASK
    return value


def make_plan_table(
    plan: Plan,
    machine: Machine,
    program: str,
    unplanned: str,
    environment: Mapping[str, str],
    allowed: Sequence[int] = (),
    *,
    autonuma: bool = False,
) -> PlanTable:
    """The plan table for a program on this machine.

    allowed: cpus that threads outside the plan may have, all of the machine's by default; autonuma: whether
    the kernel may move memory that is left to first touch.
    """
    floating = floating_cpus(plan, machine, unplanned, allowed or machine.cpus)
    nodes = {process: memory_nodes(plan, process, machine) for process in processes_of(plan)}
    spread = {process: found for process, found in nodes.items() if found}

    def locate(module: str, symbol: str) -> tuple[int, str] | None:
        return static.locate(module, symbol) if static else None

    static = None
    if any(region.region.kind == "static" for region in plan.memory):
        from .static_data import StaticData

        static = StaticData(program, environment)
    grows, names = unplanned == "float", names_here(plan, program)
    table = encode(plan, floating, locate, spread, autonuma, grows=grows, names=names)
    return msgspec.structs.replace(table, first=_first(plan) if floating else {})


def names_here(plan: Plan, program: str) -> dict[str, str]:
    """Where the plan's program has another name here, as its build tells: that, by what the plan calls it."""
    planned = {plan.app.executable, *(Path(word).name for word in plan.app.argv[:1])} - {""}
    real = os.path.realpath(executable_of(program))
    name = Path(real).name
    if name in planned or not plan.memory or not plan.app.build_id:
        return {}
    facts = elf_facts(real)
    return dict.fromkeys(planned, name) if facts and facts.build_id == plan.app.build_id else {}


def _first(plan: Plan) -> dict[str, frozenset[int]]:
    """Cpus of each process's first thread; the library tells the program those of `floating`."""
    return {thread.process: frozenset(thread.cpus) for thread in plan.threads if thread.path == "0"}


def _with_later(
    rows: list[tuple[int, ...]], plan: Plan, pools: Collection[tuple[str, int]], grows: bool
) -> list[tuple[int, ...]]:
    """Rows of threads that tell which row has the cpus for what they make beyond the plan; and in which lane
    they are, where others of their creator may follow them."""
    where = {row[:2]: number for number, row in enumerate(rows, 1)}
    pool_of = pool_of_makers(plan, pools)
    of = {
        (name_hash(process), name_hash(path)): where[name_hash(process), name_hash(f"pool {pool}")]
        for (process, path), pool in pool_of.items()
    }
    lanes = {
        (name_hash(process), name_hash(path)): where[name_hash(process), name_hash(first)]
        for (process, path), first in (first_in_lanes(plan) if grows else {}).items()
        if (process, path.rpartition(".")[0]) not in pool_of
    }
    return [(*row, of.get((row[0], row[1]), 0), lanes.get((row[0], row[1]), 0)) for row in rows]


def encode(
    plan: Plan,
    floating: Mapping[str, Sequence[int]],
    locate: Locate,
    spread: Mapping[str, tuple[int, ...]] = {},
    autonuma: bool = False,
    grows: bool = False,
    names: Mapping[str, str] = {},
) -> PlanTable:
    """The plan as a table.

    floating: cpus for threads that the plan does not name, by process, "" for processes not in it; locate:
    finds static data; spread: see PlanTable; autonuma: see make_plan_table; grows: whether threads beyond the
    plan are of the pool of who made them, or of the last that this one made, or follow on the seats of those;
    names: of modules that have another now than in the plan.
    """
    cpus: list[int] = []
    on = {cpu: node.id for node in plan.machine.nodes for cpu in node.cpus}
    pools = pool_cpus(plan) if grows else {}
    others = {(process, 0): which for process, which in floating.items()} | {
        (process, name_hash(f"pool {pool}")): which for (process, pool), which in pools.items()
    }
    threads = sorted(
        [_thread_row(thread, cpus, spread.get(thread.process, ()), on) for thread in plan.threads]
        + [
            (name_hash(process) if process else 0, path, *_place_cpus(which, cpus), -1, 0)
            for (process, path), which in others.items()
        ]
    )
    threads = _with_later(threads, plan, pools, grows)
    rows: list[tuple[tuple[int, ...], PlanRegion]] = []
    skipped: list[tuple[PlanRegion, str]] = []
    runs: list[tuple[int, int, int, int]] = []
    for region in {region.region: region for region in reversed(plan.memory)}.values():  # each key once
        row = _region_row(region, locate, len(runs), names)
        if isinstance(row, str):
            skipped.append((region, row))
            continue
        runs += [(run.offset, run.bytes, run.node, 0) for run in region.runs]
        rows.append((row, region))
    rows.sort(key=_order)
    rules, programs = [region.rule for _, region in rows if region.rule], _programs(plan)
    body = b"".join(
        (
            _pack(_THREAD, threads),
            _pack(_REGION, [row for row, _ in rows]),
            _pack(_RUN, runs),
            _pack(_SIZES, [(rule.least, _MOST_BYTES if rule.most is None else rule.most) for rule in rules]),
            _pack(_PROCESS, programs),
            struct.pack(f"<{len(cpus)}I", *cpus),
        )
    )
    size = _HEADER.size + len(body)
    nodes = len(plan.machine.nodes)
    counts = len(threads), len(cpus), len(rows), len(runs), nodes
    header = _HEADER.pack(MAGIC, VERSION, *counts, size, len(rules), autonuma, len(programs))
    known = {name_hash(process): process for process in processes_of(plan)}
    return PlanTable(
        header + body, tuple(region for _, region in rows), tuple(skipped), spread, processes=known
    )


def _programs(plan: Plan) -> list[tuple[int, ...]]:
    """Of each process whose program the plan tells: itself, its parent, the program; its number, and 1 + its
    parent's row (0: that has none). A first one may be a child here, of a script: its number is 0."""
    own = "".join(plan.app.argv[:1]).rpartition("/")[2].encode()[:_COMM].decode(errors="ignore")
    found: dict[str, tuple[str, str, int]] = {}
    for thread in plan.threads:
        parent, _, number = thread.process.rpartition(".")
        if parent and thread.program is not UNSET and number.isdecimal() and int(number) <= _MOST_CHILDREN:
            found[thread.process] = parent, thread.program, int(number)
        elif own and not parent:
            found[thread.process] = "", own, 0
    rows = {process: row for row, process in enumerate(found, 1)}
    return [
        (name_hash(process), name_hash(parent), name_hash(program), number, rows.get(parent, 0))
        for process, (parent, program, number) in found.items()
    ]


def _order(pair: tuple[tuple[int, ...], PlanRegion]) -> tuple[int, ...]:
    """As the library looks rows up: one region by thread and sequence, rules behind them by call site."""
    (process, thread, module, offset, *_, sequence, kind, _, _), region = pair
    if region.rule is None:
        return 0, process, thread, sequence
    return 1, process, thread, module, offset, kind, region.rule.least


def _pack(layout: struct.Struct, rows: Iterable[tuple[int, ...]]) -> bytes:
    return b"".join(layout.pack(*row) for row in rows)


def _place_cpus(which: Sequence[int], cpus: list[int]) -> tuple[int, int]:
    cpus.extend(which)
    return len(cpus) - len(which), len(which)


def _thread_row(
    thread: PlanThread, cpus: list[int], spread: Sequence[int], node_of_cpu: Mapping[int, int]
) -> tuple[int, ...]:
    first, count = _place_cpus(thread.cpus, cpus)
    memory = 0
    if spread and thread.path == "0":
        at, _ = _place_cpus((len(spread), *spread), cpus)
        memory = at + 1
    return (
        name_hash(thread.process),
        name_hash(thread.path),
        first,
        count,
        thread.node if stays(thread, node_of_cpu) else -1,  # for its stack
        memory,
    )


def stays(thread: PlanThread, node_of_cpu: Mapping[int, int]) -> bool:
    """Whether a thread is on one node; one of a pool may go from node to node."""
    return thread.pool is UNSET or {node_of_cpu.get(cpu) for cpu in thread.cpus} == {thread.node}


def _region_row(
    region: PlanRegion, locate: Locate, first_run: int, names: Mapping[str, str]
) -> tuple[int, ...] | str:
    """A row, or why there is none."""
    key = region.region
    if key.kind == "stack":
        return "stacks are placed with their thread"
    if key.kind not in KINDS:
        return f"memory of kind {key.kind} cannot be identified at launch"
    module, offset, build_id = key.name, 0, ""
    if key.kind == "static":
        module, _, symbol = key.name.partition(":")
        module = names.get(module, module)
        found = locate(module, symbol)
        if found is None:
            return "its module or symbol was not found"
        offset, build_id = found
        if key.build_id and build_id and key.build_id != build_id:
            return f"the {module} that was found here is not the plan's (another build, or another program's)"
    else:
        module, _, text = key.name.rpartition("+0x")
        if not module or not _is_hex(text):
            return "its call site is not known"
        module, offset = names.get(module, module), int(text, 16)
    sequence = key.sequence or 0
    if not 0 <= sequence <= _MOST_BLOCKS:
        return "no thread has such a block"
    if key.bytes > _MOST_BYTES:
        return "no memory is so large"
    first_bytes = bytes.fromhex(build_id)[:8] if build_id else b""
    return (
        name_hash(key.process),
        name_hash(key.thread) if key.kind != "static" else 0,
        name_hash(module),
        offset,
        key.bytes,
        int.from_bytes(first_bytes, "little"),
        first_run,
        len(region.runs),
        sequence if key.kind != "static" else 0,
        KINDS[key.kind],
        POLICIES[region.policy],
        bool(region.scales),
    )


def _is_hex(text: str) -> bool:
    return 0 < len(text) <= 16 and all(digit in "0123456789abcdef" for digit in text)
