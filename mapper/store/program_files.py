"""What tells one build of a program from another: the build id, else the content.

A program waits for all of this: nothing that is slow is imported.
"""

import hashlib
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from numaplan.common import is_for_shell
from numaplan.profiler import elf_facts, executable_of

_BUILD_ID = re.compile(r"[0-9a-f]{8,128}")
_SCRIPT = re.compile(r"\.(py|pyw|pl|pm|rb|sh|bash|zsh|lua|jl|js|mjs|r|R|tcl|php|m|awk)$")
_LARGEST_SCRIPT = 16 << 20
_PIECE = 1 << 20


def is_build_id(text: str) -> bool:
    """Whether a text may be a build id, and so the name of a folder."""
    return _BUILD_ID.fullmatch(text) is not None


def identity_of(path: str, *, surely_a_program: bool = False) -> str:
    """What names the build of a program or script; empty for anything else, or what cannot be read.

    surely_a_program: any file is one, whatever it looks like (that which an interpreter was given).
    """
    with suppress(OSError, ValueError):
        # To open a pipe would let its writer go on.
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
            return ""
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (Path is slower)
            line = file.readline(256)
        if line.startswith(b"\x7fELF"):
            return _of_elf(path)
        shells = is_for_shell(line) and os.access(path, os.X_OK)
        if surely_a_program or shells or line.startswith(b"#!") or _SCRIPT.search(path):
            return f"script-{_digest(path, _LARGEST_SCRIPT)}"
    return ""


def build_id_behind(path: str) -> str:
    """The build id that a plan recorded of this file has: its own, or that of its interpreter."""
    facts = elf_facts(executable_of(path))
    return facts.build_id if facts else ""


def _of_elf(path: str) -> str:
    facts = elf_facts(path)
    if facts and is_build_id(facts.build_id):
        return facts.build_id
    return f"file-{_digest(path)}"


def _digest(path: str, most: int = 1 << 62) -> str:
    """Of the content, at most of so many bytes and the size."""
    found = hashlib.blake2b(digest_size=16)
    with Path(path).open("rb", buffering=0) as file:
        while most > 0 and (piece := file.read(min(_PIECE, most))):
            found.update(piece)
            most -= len(piece)
        if most <= 0:
            found.update(str(os.fstat(file.fileno()).st_size).encode())
    return found.hexdigest()
