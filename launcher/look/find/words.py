"""Numbers, places and commands as findings write them."""

from collections.abc import Iterable, Mapping

from numaplan.common import shell_line
from numaplan.machine import format_list

from .view import BusyThread, View, Work

MOST = 8  # of a list


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit != "GiB" else f"{count:.1f} GiB"
        count /= 1024
    raise AssertionError


def percent(share: float) -> str:
    """A share for people."""
    return f"{100 * share:.0f} %"


def listed(ids: Iterable[int]) -> str:
    """`node 1` or `nodes 0-3`."""
    ids = sorted(ids)
    return f"node{'s' * (len(ids) != 1)} {format_list(ids)}"


def cpus(ids: Iterable[int]) -> str:
    """`cpu 1` or `cpus 0-3`."""
    ids = sorted(ids)
    return f"cpu{'s' * (len(ids) != 1)} {format_list(ids)}"


def by_node(memory: Mapping[int, int]) -> str:
    """`node 0: 12 MiB, node 1: 3 MiB`; of many nodes, those that have most."""
    order = sorted((node for node, count in memory.items() if count), key=lambda node: (-memory[node], node))
    told = [f"node {node}: {size(memory[node])}" for node in sorted(order[:MOST])]
    if rest := order[MOST:]:
        told.append(f"{len(rest)} more: {size(sum(memory[node] for node in rest))}")
    return ", ".join(told)


def some(words: Iterable[object]) -> str:
    """With commas between them; of many, the first ones."""
    told = [str(word) for word in words]
    rest = len(told) - MOST
    return ", ".join(told[:MOST]) + (f" and {rest} more" if rest > 0 else "")


def named(work: Work) -> str:
    """A process for people."""
    return f"{work.process.name} ({work.process.pid})"


def threads_where(threads: Iterable[BusyThread], view: View) -> str:
    """`4 busy threads on node 1 (may run on cpus 2-3)`."""
    threads = list(threads)
    allowed = {cpu for thread in threads for cpu in thread.thread.cpus}
    count = f"{len(threads)} busy thread{'s' * (len(threads) != 1)}"
    anywhere = set(view.machine.cpus) <= allowed
    may = "may run anywhere" if anywhere else f"may run on {cpus(allowed)}"
    return f"{count} on {listed({thread.node for thread in threads})} ({may})"


def again(work: Work, *before: str) -> str:
    """The command that starts a process once more, behind another one."""
    return " ".join([*before, shell_line(work.command)])


def on_node(work: Work, node: int) -> str:
    """Start it again with threads and memory on one node."""
    return again(work, f"numactl --cpunodebind={node} --membind={node}")


def by_plan(work: Work) -> tuple[str, ...]:
    """Record it, plan, and start it with the plan: each thread with its own part of the memory."""
    return (
        again(work, "nprof record -o trace.db --"),
        "nmap plan trace.db -o plan.json",
        again(work, "nlaunch --plan plan.json --"),
    )
