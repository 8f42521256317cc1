"""The table of mapping methods: what `--method` may name.

Every method is a function of a Problem that returns the node position (0..K-1) of each thread.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

from numaplan.common import UsageError

from ..inputs import WHOLE_LIMIT
from ..problem import Nodes, Problem
from .best import best
from .choicemap import choicemap
from .cmlb import cmlb
from .deloc import deloc
from .eagermap import eagermap
from .exact import MOST_THREADS, exact
from .partitioners import kahip, metis, mtkahypar, scotch
from .simple import compact, interleave, random, scatter
from .spectral import spectral
from .treematch import treematch


class Method(NamedTuple):
    """One line of the table. most_threads: limit of its use (0: none); needs: a package that is not among our
    own requirements; takes_sparse: whether it takes large sparse matrices (Problem.sparse); takes_pins:
    whether it keeps pinned threads where they are (Problem.fixed); takes_phases: whether it can be asked for
    the objective `phased`."""

    name: str
    place: Callable[[Problem], Nodes]
    summary: str
    source: str
    most_threads: int = 0
    needs: str = ""
    takes_sparse: bool = False
    takes_pins: bool = False
    takes_phases: bool = True

    def __call__(self, problem: Problem) -> Nodes:
        """The placement; raises UsageError for a large sparse problem that the method cannot take."""
        if problem.sparse is not None and not self.takes_sparse:
            most, given = WHOLE_LIMIT, problem.threads
            raise UsageError(
                f"{self.name}: takes sparse matrices of at most {most} threads, not of {given}",
                "use --method best",
            )
        return self.place(problem)

    @property
    def installed(self) -> bool:
        """Whether the package that the method needs is there (the methods of our own need none)."""
        return not self.needs or find_spec(self.needs) is not None

    def applies(self, problem: Problem) -> bool:
        """Whether it can be used on the problem here."""
        fits = not self.most_threads or problem.threads <= self.most_threads
        whole = problem.sparse is None or self.takes_sparse
        return self.installed and fits and whole and (problem.objective != "phased" or self.takes_phases)


_TABLE = (
    Method(
        "best",
        best,
        "multilevel and tabu search from all the others' placements",
        "numaplan",
        takes_sparse=True,
        takes_pins=True,
    ),
    Method("cmlb", cmlb, "greedy by communication within a window of load", "[CMLB]"),
    Method("eagermap", eagermap, "greedy groups by communication", "[EAGERMAP]"),
    Method("treematch", treematch, "least weight between groups, exhaustive then greedy", "[TREEMATCH]"),
    Method(
        "choicemap",
        choicemap,
        "pairs of mutual preference, doubled up to a node",
        "[CHOICEMAP], our reading",
    ),
    Method("deloc", deloc, "pairs kept local, busy ones spread over nodes", "[DELOC], our reading"),
    Method("spectral", spectral, "recursive bisection by the second eigenvector", "[PSL]"),
    Method(
        "exact",
        exact,
        "the optimum with a proof, for few threads",
        "branch and bound",
        MOST_THREADS,
        takes_pins=True,
        takes_phases=False,
    ),
    Method("compact", compact, "fill node after node in order of creation", "baseline", takes_sparse=True),
    Method(
        "scatter", scatter, "one thread after another, round-robin over nodes", "baseline", takes_sparse=True
    ),
    Method(
        "interleave", interleave, "pairs of threads, round-robin over nodes", "baseline", takes_sparse=True
    ),
    Method("random", random, "shuffled by the seed", "baseline", takes_sparse=True),
    Method("metis", metis, "METIS, recursive bisection", "Karypis and Kumar", 0, "pymetis", True),
    Method("kahip", kahip, "KaHIP, preset eco", "Sanders and Schulz", 0, "kahip", True),
    Method("mtkahypar", mtkahypar, "Mt-KaHyPar, preset default", "Gottesbüren et al.", 0, "mtkahypar", True),
    Method("scotch", scotch, "SCOTCH, recursive bisection", "Pellegrini", 0, "pyscotch", True),
)

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}


def find_method(name: str) -> Method:
    """The method of a name; raises UsageError with the known names."""
    if name not in METHODS:
        raise UsageError(f"unknown method {name!r}", f"take one of {', '.join(METHODS)}")
    return METHODS[name]
