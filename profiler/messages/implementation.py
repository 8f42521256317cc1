"""Which MPI a job uses: by the libraries of its program, by its launcher, and by the launcher's variables."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from .linking import linking_of

OPEN_MPI, MPICH = "Open MPI", "MPICH"  # and what has MPICH's interface: Intel MPI, MVAPICH, Cray MPI
_LIBRARIES = {
    OPEN_MPI: re.compile(r"libmpi\.so\.(20|40|8\d)|libmpi_(mpifh|usempi\w*|cxx)\.so.*"),
    MPICH: re.compile(
        r"libmpich\w*\.so.*|libmpi\.so\.(0|12)|libmpi(fort|cxx)\.so.*|libmpi_(cray|gnu|intel)\w*\.so.*"
    ),
}
LAUNCHERS = ("mpirun", "mpiexec", "mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra")
_STARTERS = {
    OPEN_MPI: re.compile(r"orterun|prterun|(mpirun|mpiexec)\.openmpi"),
    MPICH: re.compile(r"hydra\w*|(mpirun|mpiexec)\.(hydra|mpich)"),
}
_VARIABLES = {OPEN_MPI: "OMPI_COMM_WORLD_RANK", MPICH: "MPI_LOCALRANKID"}


def implementation_of(argv: Sequence[str], environment: Mapping[str, str]) -> str:
    """OPEN_MPI or MPICH; empty where nothing tells."""
    programs = [path for path in map(shutil.which, argv) if path]
    for path in programs:
        for name in linking_of(path).libraries:
            if found := _matching(_LIBRARIES, name):
                return found
    for name, variable in _VARIABLES.items():
        if variable in environment:
            return name
    return _matching(_STARTERS, Path(os.path.realpath(programs[0])).name) if programs else ""


def _matching(patterns: Mapping[str, re.Pattern[str]], text: str) -> str:
    return next((name for name, pattern in patterns.items() if pattern.fullmatch(text)), "")
