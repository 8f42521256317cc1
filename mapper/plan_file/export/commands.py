"""Programs that bind what they start: one set of cpus for all threads, and where they can a memory policy."""

from ..plan import Plan
from .kept import lost, one_set, remarks, spread_over
from .placement import all_cpus, command


def taskset(plan: Plan) -> str:
    """Says nothing of memory."""
    cpus = ",".join(map(str, all_cpus(plan)))
    return _line(plan, f"taskset --cpu-list {cpus} {command(plan)}", ())


def numactl(plan: Plan) -> str:
    """Interleaves where that is expected to be better than first touch."""
    cpus, nodes = ",".join(map(str, all_cpus(plan))), spread_over(plan)
    memory = f"--interleave={','.join(map(str, nodes))}" if nodes else "--localalloc"
    return _line(plan, f"numactl --physcpubind={cpus} {memory} {command(plan)}", nodes)


def hwloc(plan: Plan) -> str:
    """The same by hwloc-bind."""
    cpus, nodes = " ".join(f"pu:{cpu}" for cpu in all_cpus(plan)), spread_over(plan)
    memory = (
        f" --membind {' '.join(f'node:{node}' for node in nodes)} --mempolicy interleave" if nodes else ""
    )
    return _line(plan, f"hwloc-bind --physical --cpubind {cpus}{memory} -- {command(plan)}", nodes)


def _line(plan: Plan, line: str, interleaved: tuple[int, ...]) -> str:
    return f"{line}\n{remarks([one_set(plan, interleaved), lost(plan)])}"
