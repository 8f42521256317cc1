"""The library that counts messages: the user's own mpicc builds it for its MPI, into the cache folder."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from numaplan.common import (
    MachineLacksError,
    cache_folder,
    native_part,
    one_setup_at_a_time,
    output_of,
    temporary_folder,
)

from .implementation import MPICH, OPEN_MPI

LIBRARY = "numaplan_messages.so"
_SOURCES = native_part("profiler", "messages")
_COMPILERS = ("mpicc", "mpicc.openmpi", "mpicc.mpich", "mpiicx", "mpiicc")
_HEADERS = {
    OPEN_MPI: "#define OPEN_MPI ",
    MPICH: "#define MPICH_VERSION ",
}  # Intel's and Cray's, too
_PACKAGES = {OPEN_MPI: "libopenmpi-dev", MPICH: "libmpich-dev"}
# Nothing of MPI is linked: it is looked for where it is used.
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-Wl,--as-needed")


def build(implementation: str, beside: Sequence[str] = ()) -> Path:
    """The library for this MPI, or for the first that there is where that is not known; built when it is new.

    beside: programs in whose folders mpicc is looked for before PATH. Raises MachineLacksError.
    """
    lacking = f"{implementation or 'MPI'}: no mpicc builds the library that counts its messages"
    for compiler, macros in _compilers(beside):
        if _HEADERS.get(implementation, "") in macros:
            try:
                return _built(compiler, macros)
            except OSError as error:
                where = error.filename or cache_folder("messages")
                raise MachineLacksError(
                    f"the library that counts messages cannot be kept: {where}: {error.strerror}",
                    "set XDG_CACHE_HOME to a folder that can be written",
                ) from error
    package = _PACKAGES.get(implementation, " or ".join(_PACKAGES.values()))
    raise MachineLacksError(lacking, f"apt-get install {package}, or load the module that has its mpicc")


def _compilers(beside: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Compilers that find an mpi.h, and the macros that it defines."""
    folders = [str(Path(program).parent) for program in map(shutil.which, beside) if program]
    path = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    for compiler in filter(None, (shutil.which(name, path=path) for name in _COMPILERS)):
        command = [compiler, "-E", "-dM", "-include", "mpi.h", "-x", "c", os.devnull]
        try:
            yield compiler, output_of(command, Path("/"), compiler)
        except MachineLacksError:
            continue


def _built(compiler: str, macros: str) -> Path:
    sources = sorted(_SOURCES.glob("*.[ch]"))
    digest = hashlib.sha256(f"{compiler}\n{macros}".encode())
    for source in sources:
        digest.update(source.read_bytes())
    library = cache_folder("messages") / digest.hexdigest()[:20] / LIBRARY
    if library.is_file():
        return library
    folder = library.parent.parent
    with one_setup_at_a_time(folder), temporary_folder(".setup-", folder) as work:
        if not library.is_file():  # nobody else has built it meanwhile
            files = [str(source) for source in sources if source.suffix == ".c"]
            command = [compiler, *_FLAGS, *files, "-o", LIBRARY]
            output_of(command, work, f"{compiler} cannot build the library that counts messages")
            library.parent.mkdir(exist_ok=True)
            (work / LIBRARY).rename(library)
    return library
