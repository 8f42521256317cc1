"""What a command line runs: a program, or a script of an interpreter."""

import re
from collections.abc import Sequence

_INTERPRETER = re.compile(
    r"(python|pypy|ruby|perl|node|php|lua|luajit|Rscript|julia|java|bash|dash|ksh|zsh|sh)[\d.]*"
)
_NAMES_IT = ("-m", "-jar")  # followed by what runs
_CODE = ("-c", "-e")  # followed by code
_WITH_VALUE = ("-W", "-X", "-cp", "-classpath", "--class-path", "-I", "-r")


def program_name(argv: Sequence[str]) -> str:
    """The program's name without folders, of an interpreter with its script; empty where nothing is known."""
    return " ".join(filter(None, (_base(argv[0]), script_name(argv)))) if argv else ""


def script_name(argv: Sequence[str]) -> str:
    """What an interpreter runs: a script, module, archive or class, without folders; empty of other programs,
    and where it is told the code itself."""
    if not argv or not _INTERPRETER.fullmatch(_base(argv[0])):
        return ""
    words = iter(argv[1:])
    for word in words:
        if word in _CODE:
            return ""
        if word in _NAMES_IT:
            return _base(next(words, ""))
        if word in _WITH_VALUE:
            next(words, "")
        elif not word.startswith("-"):
            return _base(word)
    return ""


def other_script(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two command lines run different scripts; not where one runs none, or it is not known."""
    scripts = {script_name(one), script_name(other)}
    return "" not in scripts and len(scripts) > 1


def _base(path: str) -> str:
    return path.rpartition("/")[2]
