"""Where threads and pages are to be, and what that is expected to cost."""

from dataclasses import dataclass

from numaplan.machine import Cost

from ...memory.pages import PagePlan
from ...memory.run_table import Spread
from ...threads.problem import Floats, Nodes
from .cpu_sets import Sets


@dataclass(frozen=True)
class Placement:
    """places: (N,) positions among the task's places, bound: whether threads stay there; cpus: of each;
    pages: where they are put, None: where they are touched first; moved: from there by the kernel; traffic:
    (N, K) expected accesses of each thread to memory of each node, of the kind that counts; spread: how pages
    were found that have a place; roams: whether threads of pools that keep to their memory go from place to
    place, as they have to wait for cpus."""

    name: str
    places: Nodes
    cpus: Sets
    pages: PagePlan | None
    traffic: Floats
    cost: Cost
    bound: bool = True
    moved: bool = False
    spread: Spread = "reads"
    roams: bool = False
