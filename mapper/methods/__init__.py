"""The table of mapping methods: what `--method` may name.

Every method is a function of a Problem that returns the node position (0..K-1) of each thread. A module is
imported when its method is asked for.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from numaplan.common import UsageError
from numaplan.mapper.problem import WHOLE_LIMIT, Nodes, Problem


class Method(NamedTuple):
    """One line of the table; the function has the method's name. most_threads: limit of its use (0: none);
    needs: a package that is not among our own requirements; takes_links: whether it takes large sparse
    matrices (Problem.links)."""

    name: str
    module: str
    summary: str
    source: str
    most_threads: int = 0
    needs: str = ""
    takes_links: bool = False

    @property
    def installed(self) -> bool:
        """Whether the package that the method needs is there (the methods of our own need none)."""
        return not self.needs or find_spec(self.needs) is not None

    def applies(self, problem: Problem) -> bool:
        """Whether it can be used on the problem here."""
        fits = not self.most_threads or problem.threads <= self.most_threads
        return self.installed and fits and (problem.links is None or self.takes_links)

    def function(self) -> Callable[[Problem], Nodes]:
        """The method itself; raises UsageError for a large sparse problem that it cannot take."""
        module = import_module(f"numaplan.mapper.methods.{self.module}")
        function: Callable[[Problem], Nodes] = getattr(module, self.name)
        return function if self.takes_links else partial(_whole_only, function, self.name)


def _whole_only(function: Callable[[Problem], Nodes], name: str, problem: Problem) -> Nodes:
    if problem.links is not None:
        raise UsageError(
            f"{name}: takes sparse matrices of at most {WHOLE_LIMIT} threads, not of {problem.threads}",
            "use --method best",
        )
    return function(problem)


_TABLE = (
    Method(
        "best",
        "best",
        "multilevel and tabu search from all the others' placements",
        "numaplan",
        takes_links=True,
    ),
    Method("cmlb", "cmlb", "greedy by communication within a window of load", "Zhang et al., CMLB"),
    Method("eagermap", "eagermap", "greedy groups by communication", "Cruz et al., EagerMap"),
    Method("treematch", "treematch", "least weight between groups, exhaustive then greedy", "Jeannot et al."),
    Method(
        "choicemap",
        "choicemap",
        "pairs of mutual preference, doubled up to a node",
        "Soomro et al., our reading",
    ),
    Method("deloc", "deloc", "pairs kept local, busy ones spread over nodes", "Agung et al., our reading"),
    Method("spectral", "spectral", "recursive bisection by the second eigenvector", "Pothen, Simon, Liou"),
    Method("exact", "exact", "the optimum with a proof, for few threads", "branch and bound", 14),
    Method("compact", "simple", "fill node after node in order of creation", "baseline", takes_links=True),
    Method("scatter", "simple", "deal threads out one at a time", "baseline", takes_links=True),
    Method("interleave", "simple", "deal threads out in pairs", "baseline", takes_links=True),
    Method("random", "simple", "shuffled by the seed", "baseline", takes_links=True),
    Method("metis", "partitioners", "METIS, recursive bisection", "Karypis and Kumar", 0, "pymetis", True),
    Method("kahip", "partitioners", "KaHIP, preset eco", "Sanders and Schulz", 0, "kahip", True),
    Method(
        "mtkahypar", "partitioners", "Mt-KaHyPar, preset default", "Gottesbüren et al.", 0, "mtkahypar", True
    ),
    Method("scotch", "partitioners", "SCOTCH, recursive bisection", "Pellegrini", 0, "pyscotch", True),
)

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}


def find_method(name: str) -> Method:
    """The method of a name; raises UsageError with the known names."""
    if name not in METHODS:
        raise UsageError(f"unknown method {name!r}", f"take one of {', '.join(METHODS)}")
    return METHODS[name]
