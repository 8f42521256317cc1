"""The environment in which a program loads the preload library, and its control file.

The control file names the processes of a job; all of them map it.

Imports nothing heavy: the program waits for it.
"""

import os
import struct
from collections.abc import Mapping
from pathlib import Path

from numaplan.common import MachineLacksError, UsageError, native_part

# The control file (native/preload/processes.c): a header of 64 bytes, entries of 64; control.py reads it.
CONTROL = "control"
MAGIC = b"NUMAPLCT"
CONTROL_VERSION = 2
CAPACITY = 16384
_HEADER = struct.Struct("<8s6I32x")
_ENTRY_BYTES = 64

LIBRARY = native_part("profiler", "preload.so")

# What an outer nlaunch or nprof has put into our environment: its library, and its plan (launcher/native).
_LIBRARIES = (LIBRARY.name, "enforce.so")
_PLANNED = ("NUMAPLAN_PLAN", "NUMAPLAN_TRACER", "NUMAPLAN_OVERRIDE")

# Programs that only carry the one that is meant: they load the library too and must not count as processes.
CARRIERS = "perf:qemu-x86_64:qemu-aarch64"


def prepare(workdir: Path, environment: Mapping[str, str], library: Path = LIBRARY) -> dict[str, str]:
    """The environment with the preload library in front of an existing LD_PRELOAD, logging into `workdir`.

    Of an outer one of ours nothing is left in it: two libraries in a program would count everything twice.
    Creates the control file there. Raises MachineLacksError when the library was not built, UsageError when
    the folder cannot be written.
    """
    if not library.is_file():
        raise MachineLacksError(f"{library.name}: the native library is not built", "run 'make setup'")
    workdir = workdir.resolve()
    try:
        _create_control(workdir)
    except OSError as error:
        hint = "free some space there, or have it elsewhere (nprof record: -o; nlaunch: TMPDIR)"
        raise UsageError(f"{workdir}: {error.strerror}", hint) from error
    environment = of_no_other(environment)
    loaded = environment.get("LD_PRELOAD", "").strip()
    return {
        **environment,
        "LD_PRELOAD": f"{_loadable(library, workdir)}:{loaded}".rstrip(":"),
        "NUMAPLAN_LOG": str(workdir),
        "NUMAPLAN_SKIP": CARRIERS,
        "NUMAPLAN_STARTER": str(os.getpid()),
    }


def of_no_other(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of who started us without what another nlaunch or nprof has put there: ours holds."""
    found = {name: value for name, value in environment.items() if name not in _PLANNED}
    if "NUMAPLAN_LOG" in environment and "LD_PRELOAD" in environment:
        loaded = [path for path in environment["LD_PRELOAD"].replace(" ", ":").split(":") if path]
        others = [path for path in loaded if Path(path).name not in _LIBRARIES]
        if len(others) < len(loaded):
            found["LD_PRELOAD"] = ":".join(others)
            if not others:
                del found["LD_PRELOAD"]
    return found


def _create_control(workdir: Path) -> None:
    """Write an empty control file; its zeros are written out, so that touching them cannot fail later."""
    header = _HEADER.pack(MAGIC, CONTROL_VERSION, _ENTRY_BYTES, CAPACITY, 0, 0, _call_filters() + 1)
    (workdir / CONTROL).write_bytes(header + bytes(CAPACITY * _ENTRY_BYTES))


def _call_filters() -> int:
    """How many filters of system calls hold for us: of more a program is to be left alone."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return -1
    numbers = dict(line.split(":\t", 1) for line in lines if line.startswith("Seccomp"))
    # Before Linux 5.9: at least whether there is one.
    return int(numbers.get("Seccomp_filters", 0)) or int(numbers.get("Seccomp", 0))


def _loadable(library: Path, workdir: Path) -> Path:
    """A path that LD_PRELOAD can carry: the linker splits it at spaces and colons and expands `$`."""
    if not set(" :$") & set(str(library)):
        return library
    link = workdir / library.name
    if set(" :$") & set(str(link)):
        raise UsageError(
            f"{workdir}: a library cannot be loaded from a path with a space, colon or dollar",
            "set TMPDIR to a folder without them",
        )
    link.unlink(missing_ok=True)
    link.symlink_to(library)
    return link
