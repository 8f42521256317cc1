"""What a command line runs: a program, or a script of an interpreter."""

import re
from collections.abc import Iterable, Sequence

_RANK_LAUNCHER = re.compile(r"(mpirun|mpiexec|orterun|prun|prterun|srun)(\..*)?")
_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_SHELLS = ("bash", "dash", "ksh", "zsh", "sh")
_INTERPRETER = re.compile(
    rf"(python|pypy|ruby|perl|node|php|lua|luajit|Rscript|julia|java|{'|'.join(_SHELLS)})[\d.]*"
)
# Of each interpreter, options that what runs follows (or is in), that code follows, and that have a value.
_NONE = r"(?!)"
_PYTHON = r"-[bBdEhiIOPqsSuvVx]*"
_PERL = (_NONE, r"-|-[nplawi0-9]*[eE].*", r"-[IrC]")
_OPTIONS = {
    "python": (rf"{_PYTHON}m(.*)", rf"-|{_PYTHON}c.*", rf"{_PYTHON}[WX]"),
    "sh": (_NONE, r"-[A-Za-z]*[cs][A-Za-z]*", r"[-+][A-Za-z]*[oO]|--rcfile|--init-file"),
    "perl": _PERL,
    "ruby": _PERL,
    "java": (r"-jar()|-m()|--module()", _NONE, r"-cp|-p|-classpath|--(class-path|module-path|add-[a-z]+)"),
    "php": (r"-f()", r"-|-r.*", r"-[cdz]"),
    "julia": (_NONE, r"-|-[eE].*", r"-[CHJLpt]"),
}
_OTHERS = (_NONE, r"-|-p?e.*|-p|--eval|--print", r"-[lr]|--require|--import")
_SUFFIXES = {
    **{"py": "python", "rb": "ruby", "pl": "perl", "js": "node", "R": "Rscript", "jl": "julia"},
    **{"php": "php", "lua": "lua"},
    **dict.fromkeys(_SHELLS, "sh"),
}


def as_text(words: Iterable[str]) -> list[str]:
    """The words of a command line as files hold them: replacement characters for what is no UTF-8.

    Python has such bytes as lone surrogates, which no file can hold.
    """
    return [
        _NO_BYTE.sub("\ufffd", word).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        for word in words
    ]


def program_name(argv: Sequence[str]) -> str:
    """The program's name without folders, of an interpreter with its script; empty where nothing is known."""
    return " ".join(filter(None, (_base(argv[0]), script_name(argv)))) if argv else ""


def own_words(argv: Sequence[str], executable: str) -> list[str]:
    """The words of a recorded command line from the program `executable` on; all where that is not named."""
    for place, word in enumerate(argv):
        if executable and _base(word) == executable:
            return [*argv[place:]]
    return [*argv]


def starts_ranks(argv: Sequence[str]) -> bool:
    """Whether a command line begins with a launcher of ranks, such as mpirun or srun."""
    return bool(argv and _RANK_LAUNCHER.fullmatch(_base(argv[0])))


def rank_words(argv: Sequence[str], executable: str) -> list[str]:
    """What a rank runs of the command line that its job was recorded by, without a launcher and its options.

    executable: name of what ranks ran. Empty where a launcher's words do not tell, or start several programs.
    """
    if not starts_ranks(argv):
        return [*argv]
    own = own_words(argv[1:], executable)
    return own if len(own) < len(argv) - 1 and ":" not in argv else []


def script_name(argv: Sequence[str], executable: str = "") -> str:
    """The same as `script_path`, without folders."""
    return _base(script_path(argv, executable))


def script_path(argv: Sequence[str], executable: str = "") -> str:
    """What an interpreter runs, as it is given: a script, module, archive or class; empty of other programs,
    and where it is told the code itself.

    executable: name of what really ran, where that is known. A script that only starts another program tells
    nothing then; one that is started by its own name is known by the suffix.
    """
    family = _family(argv[0]) if argv else ""
    if not argv or (executable and family and family != _family(executable)):
        return ""
    if family:
        return _script_among(argv[1:], family)
    _, dot, suffix = argv[0].rpartition(".")
    return argv[0] if dot and _SUFFIXES.get(suffix, "") == _family(executable) != "" else ""


def other_script(one: Sequence[str], other: Sequence[str], ran: Sequence[str] = ("", "")) -> bool:
    """Whether two command lines run different scripts; not where one runs none, or it is not known.

    ran: of each, the name of what really ran, where that is known.
    """
    scripts = {script_name(argv, executable) for argv, executable in zip((one, other), ran, strict=True)}
    return "" not in scripts and len(scripts) > 1


def _script_among(words: Sequence[str], family: str) -> str:
    names_it, code, with_value = _OPTIONS.get(family, _OTHERS)
    rest = iter(words)
    for word in rest:
        if named := re.fullmatch(names_it, word):
            return next(filter(None, named.groups()), "") or next(rest, "")
        if re.fullmatch(code, word):
            return ""
        if re.fullmatch(with_value, word):
            next(rest, "")
        elif not word.startswith(("-", "+")):
            return word
    return ""


def _family(program: str) -> str:
    """The interpreter that a program is, whatever its version; all shells are one. Empty: another program."""
    found = _INTERPRETER.fullmatch(_base(program))
    if not found:
        return ""
    return "sh" if found[1] in _SHELLS else {"pypy": "python"}.get(found[1], found[1])


def _base(path: str) -> str:
    return path.rpartition("/")[2]
