"""Jobs that are made up: ranks that exchange halos on a grid, with threads and pages inside each."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts
from numaplan.machine import Machine
from numaplan.mapper.jobs.part import COUNTED, PAGE_ROWS, Messages, Part, PartFacts
from numaplan.mapper.jobs.part_writing import write_part
from numaplan.profiler import RegionKey

HALO_BYTES = 1 << 20  # to each neighbour
PERIOD = 1000
Ints = NDArray[np.int64]


def halo(shape: Sequence[int], order: Ints | None = None) -> dict[int, list[int]]:
    """The neighbours of each rank on a grid; order: which place each rank has (default: in turn)."""
    cells = np.arange(int(np.prod(shape))).reshape(*shape)
    rank_at = np.argsort(order) if order is not None else np.arange(cells.size)
    found: dict[int, list[int]] = {rank: [] for rank in range(cells.size)}
    for axis in range(cells.ndim):
        near, far = np.swapaxes(cells, 0, axis)[:-1].ravel(), np.swapaxes(cells, 0, axis)[1:].ravel()
        for one, other in zip(rank_at[near].tolist(), rank_at[far].tolist(), strict=True):
            found[one].append(other)
            found[other].append(one)
    return {rank: sorted(peers) for rank, peers in found.items()}


def make_job(folder: Path, peers: dict[int, list[int]], threads: int, machine: str, pages: int = 8) -> Path:
    """The parts of a job in a folder; pages: of each thread."""
    place = Machine.load(machine)
    for rank in peers:
        write_part(folder, make_part(rank, peers, threads, place, pages))
    return folder


def ring_of(rank: int, threads: int) -> NDArray[np.float64]:
    """(T, T) lines between neighbours on the ring of a rank's threads."""
    ring = np.zeros((threads, threads))
    if threads > 1:
        each = np.arange(threads)
        ring[each, (each + 1) % threads] = np.random.default_rng(rank).uniform(5e5, 15e5, threads)
        ring = np.maximum(ring, ring.T)
        np.fill_diagonal(ring, 0.0)
    return ring


def make_part(rank: int, peers: dict[int, list[int]], threads: int, machine: Machine, pages: int = 8) -> Part:
    """A rank whose threads share with their neighbours on a ring, each with pages of its own."""
    ring, rng = ring_of(rank, threads), np.random.default_rng((rank, 1))
    loads = rng.uniform(9000, 11000, threads)
    together = 1.0 - np.eye(threads)
    matrices = {
        "comm": ring * 2 / PERIOD,
        "lines": ring,
        "together": together,
        "elsewhere": np.diag(loads / 10),
        "elsewhere_missed": np.diag(loads / 100),
    }
    sent = peers[rank]
    return Part(
        facts=PartFacts(
            rank=rank,
            own=threads,
            recording=f"sha256:{rank:064x}",
            ranks=len(peers),
            argv=("./halo",),
            executable="halo",
            messages=True,
            pages=True,
            period=PERIOD,
            page_columns=(*PAGE_ROWS, "missed", "missed_before"),
            whole=COUNTED,
            matrices=tuple(matrices),
        ),
        machine=machine,
        threads=[(f"r{rank}", f"0.{thread}" if thread else "0") for thread in range(threads)],
        loads=loads,
        accesses=loads * PERIOD,
        lives=[(0, 10**9)] * threads,
        names=["halo"] * threads,
        keeps=[True] * threads,
        seen_on=[],
        matrices=matrices,
        phases=loads[None, :],
        phase_rates=np.ones(1),
        phase_ends=np.array([10**9]),
        pages=_pages(rank, loads, pages, rng),
        messages=Messages(
            peer=np.array(sent, np.int64),
            kind=["sent"] * len(sent),
            bytes=np.full(len(sent), HALO_BYTES),
            count=np.full(len(sent), 16),
            thread=np.zeros(len(sent), np.int64),
        ),
    )


def _pages(rank: int, loads: NDArray[np.float64], pages: int, rng: np.random.Generator) -> PageCounts:
    """A block that the main thread touched first; a thread uses its part and the next one's first page."""
    threads = len(loads)
    own = np.repeat(np.arange(threads), pages)
    page = np.concatenate(
        [np.arange(threads * pages), (np.arange(threads) * pages + pages) % (threads * pages)]
    )
    thread = np.concatenate([own, np.arange(threads)])
    accesses = np.concatenate([loads[own] / pages, np.full(threads, 20.0)]).astype(np.int64)
    order = np.lexsort((thread, page))
    made = accesses[order]
    zeros = np.zeros(len(order), np.int64)
    key = RegionKey(
        kind="heap",
        name="halo+0x1000",
        bytes=threads * pages * 4096,
        process=f"r{rank}",
        thread="0",
        sequence=1,
    )
    return PageCounts(
        regions=[key],
        region=zeros,
        page=page[order],
        thread=thread[order],
        accesses=made,
        writes=made // 3,
        toucher=zeros,
        before=zeros,
        period=PERIOD,
        lives=np.array([[0, -1]]),
        missed=made // 10 + rng.integers(0, 3, len(order)),
        missed_before=zeros,
    )
