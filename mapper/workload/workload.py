"""What a plan is made for: a program's threads, their communication and loads, and who touched which page.

Read from comm.csv and loads.csv here, from traces in from_trace.py.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from numaplan.analyzer import LocalShares, PageCounts
from numaplan.common import UsageError
from numaplan.machine import Machine

from ..plan_file.parts import PlanApp
from ..threads.problem import Floats
from ..threads.sparse import SparseMatrix
from .files import digest, read_comm, read_loads, read_phases
from .larger_inputs import LargerInput
from .use import ThreadUse


class Workload(msgspec.Struct, frozen=True):
    """threads: (process, creation path) of each row of comm (N, N) and loads (N,); sources: their digests;
    phases: (P, N) loads by phase of the run, and phase_rates: (P,) accesses a slice of time in each;
    seen_on: node of each thread in the recording, empty where some had none; identity: whether threads keep
    their roles from run to run, where several runs were compared; lives: (start, end) of each thread in ns,
    end -1: not seen; empty where not known; use: of a trace, how much they use;
    keeps: whether each keeps to its memory (analyzer/roles.py), names: of threads; empty where not known;
    unordered: whether threads come in another order in each run, so that none can be told from another;
    real_time: share 0..1 of all accesses that threads make which run in real time;
    apart: whether processes were recorded apart, so that nobody saw what they exchange;
    sizes: the pages of further runs in which some regions have other sizes;
    larger: what would reach memory with larger inputs; not_balanced: what to say of load that nobody can
    share, where loads are balanced; makers: row of each thread that memory is known by, where several threads
    follow one another as one row; there: (N,) share 0..1 of the run in which each row's processes run, and
    (N,) in which they are there, where a row has threads of several; counted: how much was local as the
    program ran; lasted_s: how long that took, for a kernel that moves pages."""

    threads: Sequence[tuple[str, str]]
    comm: Floats | SparseMatrix
    loads: Floats
    sources: dict[str, Any]
    argv: tuple[str, ...] = ()
    build_id: str = ""
    executable: str = ""
    pages: PageCounts | None = None
    machine: Machine | None = None
    notes: tuple[str, ...] = ()
    phases: Floats | None = None
    phase_rates: Floats | None = None
    seen_on: tuple[int, ...] = ()
    identity: dict[str, Any] | None = None
    lives: tuple[tuple[int, int], ...] = ()
    use: ThreadUse | None = None
    keeps: tuple[bool, ...] = ()
    larger: tuple[LargerInput, ...] = ()
    not_balanced: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    unordered: bool = False
    real_time: float = 0.0
    apart: bool = False
    sizes: tuple[PageCounts, ...] = ()
    counted: LocalShares | None = None
    lasted_s: float = math.inf
    makers: Mapping[tuple[str, str], int] | None = None
    there: tuple[Floats, Floats] | None = None

    @property
    def app(self) -> PlanApp:
        """The program, as a plan names it."""
        return PlanApp(
            argv=self.argv, build_id=self.build_id, threads=len(self.threads), executable=self.executable
        )


def workload_of_files(
    comm: Path, loads: Path | None, phases: Path | None = None, symmetrise: bool = False
) -> Workload:
    """Of a matrix and a load vector; thread i is the i-th that the main thread made (OpenMP's numbering)."""
    matrix, note = read_comm(comm, symmetrise)
    vector = read_loads(loads) if loads else np.ones(len(matrix))
    if len(vector) != len(matrix):
        raise UsageError(
            f"{loads}: {len(vector)} loads for {len(matrix)} threads in {comm}", "give one number per thread"
        )
    by_phase = read_phases(phases, len(matrix)) if phases else None
    sources = {
        "comm": digest(comm),
        **({"loads": digest(loads)} if loads else {}),
        **({"phases": digest(phases)} if phases else {}),
    }
    return Workload(
        threads=[("p0", f"0.{i}" if i else "0") for i in range(len(matrix))],
        comm=matrix,
        loads=vector,
        sources=sources,
        notes=(note,) if note else (),
        phases=by_phase.loads if by_phase else None,
        phase_rates=by_phase.rates if by_phase else None,
    )
