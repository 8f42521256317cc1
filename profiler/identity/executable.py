"""The ELF file that really runs when a program is started. Imports nothing slow: the program waits for it."""

import os
import shutil
from pathlib import Path

from numaplan.common import SHELL, is_for_shell

_MAX_DEPTH = 4  # scripts whose interpreter is a script; the kernel's own limit


def executable_of(program: str, depth: int = 0) -> str:
    """The ELF file behind a program: itself, or the interpreter that a script names (also by env), or has."""
    try:
        with Path(program).open("rb") as file:
            line = file.readline(256)
    except OSError:
        return program
    if depth == _MAX_DEPTH:
        return program
    if is_for_shell(line) and os.access(program, os.X_OK):
        return executable_of(SHELL, depth + 1)
    if not line.startswith(b"#!"):
        return program
    interpreter, *arguments = os.fsdecode(line[2:]).split() or [""]
    if not interpreter:
        return program
    if Path(interpreter).name == "env":
        names = [text for text in arguments if not text.startswith("-") and "=" not in text]
        found = shutil.which(names[0]) if names else None
        return executable_of(found, depth + 1) if found else program
    return executable_of(interpreter, depth + 1)
