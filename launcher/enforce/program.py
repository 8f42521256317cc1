"""Whether the preload library can be loaded into a program."""

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from numaplan.profiler import ElfFacts, elf_facts

_OUR_BITS = 64


def preload_obstacle(executable: str, facts: ElfFacts | None) -> str:
    """Why the preload library cannot see this program's threads; empty when it can."""
    if gains_privileges(executable):
        return "it gains privileges"
    if facts is None:
        return ""
    if facts.bits != _OUR_BITS:
        return f"it is a {facts.bits}-bit program"
    if facts.go:
        return "Go creates its threads without libc"
    if not facts.interpreter:
        return "it is statically linked"
    return "" if _same_library(facts.interpreter) else "it is linked with another C library"


def _same_library(linker: str) -> bool:
    """Whether a program's dynamic linker is of the C library that ours was built for: Python's own."""
    ours = elf_facts(sys.executable)
    return not ours or not ours.interpreter or Path(ours.interpreter).name == Path(linker).name


def gains_privileges(executable: str) -> bool:
    """Whether the kernel starts it with other rights than ours (setuid, setgid, capabilities), libraries of
    LD_PRELOAD being left out then."""
    try:
        facts = os.stat(executable)  # noqa: PTH116
        if os.statvfs(executable).f_flag & os.ST_NOSUID:
            return False
    except OSError:
        return False
    if facts.st_mode & stat.S_ISUID and facts.st_uid != os.geteuid():
        return True
    if facts.st_mode & stat.S_ISGID and facts.st_mode & stat.S_IXGRP and facts.st_gid != os.getegid():
        return True
    with suppress(OSError):
        return bool(os.getxattr(executable, "security.capability")) and os.geteuid() != 0
    return False
