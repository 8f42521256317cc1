"""Jobs of many ranks: what planning takes and what goes between hosts, against launchers and a flat solver.

`whole`: 10 x 10 x 10 ranks that exchange halos, of 16 threads each, on 63 hosts of 8 nodes of 32 cpus, read
and planned by 'nmap plan' in one process. `flat`: all its threads placed at once by the solver on all nodes
of all hosts, priced alike: 1 for a line between nodes, 10 between hosts. `ranks`: only ranks on hosts.
NUMAPLAN_BENCH_PLOT names a drawing, NUMAPLAN_BENCH_SHAPES the shapes, such as 10x10x10,16x16x16.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from numaplan.common import temporary_folder, write_document
from numaplan.machine import Cluster
from numaplan.mapper import JobPlan
from numaplan.mapper.jobs.host_workload import LINE_BYTES
from numaplan.mapper.jobs.placing import RANK_ORDER, place_ranks
from numaplan.mapper.jobs.rank_graph import RankGraph
from numaplan.mapper.threads.problem import Problem
from numaplan.mapper.threads.solver import solve
from numaplan.mapper.threads.sparse import SparseMatrix, sparse_matrix

from .job_instances import HALO_BYTES, halo, make_job, ring_of
from .scaling import panel

SHAPE, THREADS, MACHINE, SLOTS = (10, 10, 10), 16, "8x32", 16
SHAPES = ((5, 5, 5), (10, 10, 10), (13, 13, 13), (16, 16, 16), (20, 20, 25))
NEXT_NODE, NEXT_HOST = 1.0, 10.0
COLOURS = {"in order": "#1b9e77", "shuffled": "#d95f02"}


def run() -> dict[str, Any]:
    """By part: what it took, and bytes between hosts as shares of all and of compact's."""
    words = os.environ.get("NUMAPLAN_BENCH_SHAPES", "")
    shapes = [tuple(map(int, word.split("x"))) for word in words.split(",")] if words else list(SHAPES)
    results: dict[str, Any] = {} if words else _whole()
    results["ranks"] = {f"N={np.prod(shape)}": _ranks(shape) for shape in shapes}
    target = os.environ.get("NUMAPLAN_BENCH_PLOT")
    if target:
        write_document(target, drawing(results["ranks"]).encode())
    return results


def _whole() -> dict[str, Any]:
    peers = halo(SHAPE)
    hosts = -(-len(peers) // SLOTS)
    with temporary_folder("numaplan-jobs-") as folder:
        job = make_job(folder / "job", peers, THREADS, MACHINE)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = ["plan", str(job), "--cluster", f"{hosts}*{MACHINE}:{SLOTS}", "--engine", "local:1"]
        output = folder / "job.json"
        command = [sys.executable, "-m", "numaplan", *words, "-o", str(output)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        plan = JobPlan.load(output)
        found = plan.predicted
        return {
            "whole": {
                "processor_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                "mib": after.ru_maxrss / 1024,
                "parts_mib": sum(file.stat().st_size for file in job.rglob("*.parquet")) / (1 << 20),
                "between_hosts": found.between_hosts / found.message_bytes,
                "of_compact": found.between_hosts / found.baselines[RANK_ORDER],
            },
            "flat": _against_flat(plan, peers),
        }


def _against_flat(plan: JobPlan, peers: dict[int, list[int]]) -> dict[str, float]:
    """The cost of the plan's places of threads beside those of the solver for all of them at once."""
    matrix = _threads(peers)
    each = len(plan.cluster.hosts[0].machine.nodes)
    host = {one.name: place for place, one in enumerate(plan.cluster.hosts)}
    places = np.full(len(matrix), -1)
    for name, own in plan.hosts.items():
        for thread in own.threads:
            number = int(thread.path.partition(".")[2] or 0)
            places[int(thread.process[1:]) * THREADS + number] = host[name] * each + thread.node
    nodes = len(host) * each
    at = np.arange(nodes)
    apart = np.where(at[:, None] // each == at // each, NEXT_NODE, NEXT_HOST) * (at[:, None] != at)
    sizes = np.bincount(places, minlength=nodes)
    used = np.flatnonzero(sizes)
    distances = apart[np.ix_(used, used)]
    start = np.repeat(np.arange(len(used)), sizes[used])
    problem = Problem(
        comm=np.zeros((0, 0)),
        sparse=matrix,
        loads=np.ones(len(matrix)),
        sizes=sizes[used],
        distances=distances,
        targets=sizes[used].astype(np.float64),
        objective="hop",
    )
    began = process_time()
    flat = solve(problem, start[None, :]).places
    seconds = process_time() - began
    costs = [_cost(matrix, where, distances) for where in (np.searchsorted(used, places), flat)]
    return {"plan_over_flat": costs[0] / costs[1], "flat_solver_s": seconds}


def _threads(peers: dict[int, list[int]]) -> SparseMatrix:
    """Lines between all threads: rings within ranks, messages between main threads."""
    first, second, value = [], [], []
    for rank, others in peers.items():
        ring = ring_of(rank, THREADS)
        for one, other in np.argwhere(ring).tolist():
            first.append(rank * THREADS + one)
            second.append(rank * THREADS + other)
            value.append(float(ring[one, other]))
        for peer in others:
            first.append(rank * THREADS)
            second.append(peer * THREADS)
            value.append(HALO_BYTES / LINE_BYTES)
    size = len(peers) * THREADS
    return sparse_matrix(sparse.coo_array((value, (first, second)), shape=(size, size)).tocsr())


def _cost(matrix: SparseMatrix, places: NDArray[np.int64], distances: NDArray[np.float64]) -> float:
    return float((matrix.weight * distances[places[matrix.rows], places[matrix.to]]).sum()) / 2


def _ranks(shape: tuple[int, ...]) -> dict[str, Any]:
    """Ranks on hosts by their messages alone, numbered in order and by chance."""
    count = int(np.prod(shape))
    cluster = Cluster.load(f"{-(-count // SLOTS)}*{MACHINE}:{SLOTS}")
    row: dict[str, Any] = {}
    for name, order in (("in order", None), ("shuffled", np.random.default_rng(7).permutation(count))):
        peers = halo(shape, order)
        pairs = np.array([(one, other) for one, others in peers.items() for other in others])
        values = np.full(len(pairs), 2.0 * HALO_BYTES)
        matrix = sparse_matrix(
            sparse.coo_array((values, (pairs[:, 0], pairs[:, 1])), shape=(count, count)).tocsr()
        )
        graph = RankGraph(tuple(range(count)), np.full(count, THREADS), matrix, True)
        before, began = _most_memory(anew=True), process_time()
        found = place_ranks(graph, cluster)
        row[name] = {
            "between_hosts": found.between[found.name] / (matrix.sum() / 2),
            "of_compact": found.between[found.name] / found.between[RANK_ORDER],
            "seconds": process_time() - began,
            "mib": _most_memory() - before,
        }
    return row


def _most_memory(*, anew: bool = False) -> float:
    """MiB that this process had at most; anew: from now on."""
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def drawing(rows: dict[str, Any]) -> str:
    """Three panels over the number of ranks: bytes between hosts over compact's, processor seconds, MiB."""
    width, height = 300, 220
    panels = (
        ("bytes between hosts / compact's", "of_compact"),
        ("processor seconds", "seconds"),
        ("MiB", "mib"),
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * len(panels)}" height="{height + 24}"'
        ' font-family="sans-serif" font-size="11">',
        "<style>text{fill:#1f2937} @media (prefers-color-scheme: dark){text{fill:#e6edf5}}</style>",
    ]
    for column, (title, key) in enumerate(panels):
        parts.append(f'<g transform="translate({column * width},0)">')
        parts += panel(title, rows, key, width, height, COLOURS)
        parts.append("</g>")
    for number, (label, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{20 + 80 * number}" y="{height + 16}" style="fill:{colour}">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])
