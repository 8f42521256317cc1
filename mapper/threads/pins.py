"""Threads that a user pins, to a node or to one cpu: read, found, and held in a placement."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from numaplan.common import UsageError, read_document
from numaplan.machine import Machine

from .cost import objective_value
from .phases import goal_of
from .problem import Nodes, Problem
from .refine import Exchange

LIMIT = 1 << 20  # bytes of a file of pins
_FORM = "give thread=node or thread=cpu:N, such as 0.3=1 or p0.1:0.2=cpu:5"


def read_pins(words: Sequence[str]) -> dict[str, str]:
    """Pins of `thread=where` words; `@FILE` stands for a file of such lines (# begins a comment).

    Raises UsageError for a word of another form, or a thread pinned twice.
    """
    pins: dict[str, str] = {}
    for word in words:
        for line in _lines(Path(word[1:])) if word.startswith("@") else [word]:
            thread, found, where = (part.strip() for part in line.partition("="))
            if not found or not thread or not where.removeprefix("cpu:").isdecimal():
                raise UsageError(f"--pin {line}", _FORM)
            if thread in pins:
                raise UsageError(f"--pin: thread {thread} twice", "pin each thread once")
            pins[thread] = where
    return pins


def _lines(path: Path) -> list[str]:
    try:
        text = read_document(path, "file of pins", LIMIT).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not text (byte {error.start})", _FORM) from error
    return [line for line in (line.partition("#")[0].strip() for line in text.splitlines()) if line]


def resolve_pins(
    pins: Mapping[str, str], threads: Sequence[tuple[str, str]], machine: Machine
) -> tuple[dict[int, int], dict[int, int]]:
    """Node id, and cpu where one is named, by number of the thread; threads: (process, path) of each.

    Raises UsageError for a thread or a cpu that is not there, or a path that several processes have.
    """
    nodes: dict[int, int] = {}
    cpus: dict[int, int] = {}
    for name, where in pins.items():
        thread = _find(name, threads)
        if where.startswith("cpu:"):
            cpu = int(where.removeprefix("cpu:"))
            if cpu not in machine.node_of_cpu:
                raise UsageError(f"--pin {name}={where}: no such usable cpu", "name a cpu of the machine")
            if cpu in cpus.values():
                raise UsageError(
                    f"--pin {name}={where}: another thread is pinned there", "pin one thread per cpu"
                )
            cpus[thread] = cpu
            nodes[thread] = machine.node_of_cpu[cpu]
        elif not machine.nodes[machine.index_of_node(int(where))].cpus:
            raise UsageError(f"--pin {name}={where}: the node has no usable cpus", "name another node")
        else:
            nodes[thread] = int(where)
    return nodes, cpus


def _find(name: str, threads: Sequence[tuple[str, str]]) -> int:
    process, colon, path = name.rpartition(":")
    found = [
        number for number, (own, at) in enumerate(threads) if at == path and (own == process or not colon)
    ]
    if not found:
        raise UsageError(f"--pin: no thread {name}", f"threads are {_some(threads)}")
    if len(found) > 1:
        raise UsageError(f"--pin: {len(found)} processes have a thread {name}", "write process:path")
    return found[0]


def _some(threads: Sequence[tuple[str, str]]) -> str:
    several = len({process for process, _ in threads}) > 1
    names = [f"{process}:{path}" if several else path for process, path in threads[:8]]
    return ", ".join(names) + (", …" if len(threads) > 8 else "")


def hold_pins(problem: Problem, places: Nodes) -> Nodes:
    """The placement with every pinned thread on its node; whom it displaces is who costs least."""
    if problem.fixed is None or not ((problem.fixed >= 0) & (problem.fixed != places)).any():
        return places
    choices = [_exchange_in(problem, start) for start in (_renamed(problem, places), places)]
    return min(choices, key=lambda found: objective_value(problem, found))


def _renamed(problem: Problem, places: Nodes) -> Nodes:
    """The same groups on other nodes of the same size, so that most pins hold as they are."""
    from scipy.optimize import linear_sum_assignment

    pinned = np.asarray(problem.fixed)
    held = np.zeros((problem.nodes, problem.nodes))
    np.add.at(held, (places[pinned >= 0], pinned[pinned >= 0]), 1.0)
    held[problem.sizes[:, None] != problem.sizes[None, :]] = -len(places)
    groups, nodes = linear_sum_assignment(held, maximize=True)
    name = np.empty(problem.nodes, dtype=np.int64)
    name[groups] = nodes
    return name[places]


def _exchange_in(problem: Problem, places: Nodes) -> Nodes:
    pinned = np.asarray(problem.fixed)
    state = Exchange(goal_of(problem), places)
    for thread in np.flatnonzero(pinned >= 0).tolist():
        if state.places[thread] == pinned[thread]:
            continue
        others = np.flatnonzero((state.places == pinned[thread]) & (pinned != state.places))
        changes = state.exchange_changes(thread, others)
        state.exchange(thread, int(others[changes.argmin()]))
    return state.places
