"""A plan's placement as launchers ask for it: in order of creation, by rank, as one set, with the nodes."""

from collections.abc import Iterable, Sequence
from shlex import join

import msgspec

from numaplan.common import UsageError, rank_words

from ..parts import PlanThread
from ..plan import Plan


def in_order(plan: Plan) -> list[PlanThread]:
    """The threads in order of creation, process by process."""
    return sorted(plan.threads, key=_creation_order)


def _creation_order(thread: PlanThread) -> tuple[list[int], list[int]]:
    return _numbers(thread.process), _numbers(thread.path)


def _numbers(path: str) -> list[int]:
    """Those in a creation path, or in the name of a process."""
    return [int(part) for part in path.lstrip("pr").split(".") if part.isdecimal()]


def seats(plan: Plan) -> list[PlanThread]:
    """The same of threads that live at a time: of those which follow each other in a seat only the first."""
    first: dict[object, PlanThread] = {}
    for thread in in_order(plan):
        own = (thread.process, thread.path) if thread.lane is msgspec.UNSET else thread.lane
        first.setdefault(own, thread)
    return list(first.values())


def one_process(plan: Plan, form: str) -> list[PlanThread]:
    """The same of a plan for one process; raises UsageError for another."""
    if len({thread.process for thread in plan.threads}) > 1:
        raise UsageError(f"{form}: the plan has several processes", "use rankfile or slurm, or nlaunch")
    return seats(plan)


def processes(plan: Plan) -> dict[str, tuple[int, ...]]:
    """Cpus of each process, in order of the ranks."""
    found: dict[str, set[int]] = {}
    for thread in plan.threads:
        found.setdefault(thread.process, set()).update(thread.cpus)
    return {name: tuple(sorted(found[name])) for name in sorted(found, key=_numbers)}


def ranks(plan: Plan) -> list[tuple[int, ...]]:
    """Cpus of each rank: of each process, or of each thread (see `seats`) when there is one process."""
    found = processes(plan)
    if len(found) == 1:
        return [tuple(sorted(thread.cpus)) for thread in seats(plan)]
    return list(found.values())


def all_cpus(plan: Plan) -> tuple[int, ...]:
    """The cpus of all threads, ascending."""
    return tuple(sorted({cpu for thread in plan.threads for cpu in thread.cpus}))


def nodes_of(plan: Plan, cpus: Iterable[int]) -> tuple[int, ...]:
    """Ids of the nodes that cpus are on, ascending."""
    wanted = set(cpus)
    return tuple(sorted(node.id for node in plan.machine.nodes if wanted & set(node.cpus)))


def homes(plan: Plan) -> dict[int, int]:
    """Of each node the one whose memory its cpus touch first: itself, or the nearest that has any."""
    nodes, distances = plan.machine.nodes, plan.machine.distances
    holding = [row for row, node in enumerate(nodes) if node.memory_bytes] or [*range(len(nodes))]

    def nearest(row: int) -> int:
        return min(holding, key=lambda at: (at != row, distances[row][at] if distances else 0.0))

    return {node.id: nodes[nearest(row)].id for row, node in enumerate(nodes)}


def homes_of(plan: Plan, cpus: Iterable[int]) -> tuple[int, ...]:
    """Ids of the nodes whose memory these cpus touch first, ascending."""
    home = homes(plan)
    return tuple(sorted({home[node] for node in nodes_of(plan, cpus)}))


def memory_nodes(plan: Plan) -> tuple[int, ...]:
    """Ids of the nodes that have planned memory, or what threads touch first, ascending."""
    placed = {run.node for region in plan.memory for run in region.runs}
    return tuple(sorted(placed | set(homes_of(plan, all_cpus(plan)))))


def placed_bytes(plan: Plan, node: int | None = None) -> int:
    """Bytes that the plan places, on a node or in all."""
    return sum(run.bytes for region in plan.memory for run in region.runs if node is None or run.node == node)


def every_cpu(plan: Plan) -> tuple[int, ...]:
    """Those of the machine."""
    return tuple(cpu for node in plan.machine.nodes for cpu in node.cpus)


def spare_cpus(plan: Plan) -> tuple[int, ...]:
    """Cpus of the machine that no thread has; where there are none, the last planned one."""
    planned = all_cpus(plan)
    return tuple(sorted(set(every_cpu(plan)) - set(planned))) or planned[-1:]


def program(plan: Plan) -> Sequence[str]:
    """The recorded command line; `./app` where none was recorded."""
    return plan.app.argv or ("./app",)


def command(plan: Plan) -> str:
    """The same for a shell."""
    return join(program(plan))


def rank_command(plan: Plan) -> str:
    """The same of what each rank runs: without the launcher that the recording may have been started by."""
    return join(rank_words(plan.app.argv, plan.app.executable) or ["./app"])


def label(plan: Plan, process: str = "") -> str:
    """A name for what the plan starts, or one of its processes: of letters, digits and hyphens."""
    name = _plain(plan.app.name) or "app"
    return f"{name}-{_plain(process)}" if process else name


def _plain(name: str) -> str:
    letters = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in name.lower())
    return letters.strip("-")[:40].strip("-")


def in_json(value: object) -> str:
    """A value in JSON, which is YAML, too."""
    return msgspec.json.encode(value).decode()
