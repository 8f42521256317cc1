"""Functions as people call them."""

import re

_MOST = 40  # letters of a name that is shown as it is
_OPERATOR = re.compile(r"operator(?:<=>|<<=?|>>=?|->\*?|<=?|>=?)")
_OUTLINED = re.compile(r"\._omp_fn\.\d+$|\.omp_outlined.*$")  # what OpenMP makes of a loop's body
_MODULE = re.compile(r"__(\w+?)_MOD_(\w+)")  # of Fortran


def short_function(name: str) -> str:
    """Without what a compiler adds, and, where it is long, without what its templates are made of."""
    name = _OUTLINED.sub("", name) or name
    if found := _MODULE.fullmatch(name):
        name = f"{found[1]}::{found[2]}"
    return name if len(name) <= _MOST else _without_arguments(name)


def _without_arguments(name: str) -> str:
    """`vector<…>::operator[]` for std::vector of whatever."""
    shown, depth, at = "", 0, 0
    while at < len(name):
        if found := _OPERATOR.match(name, at):
            shown, at = shown + found[0] * (depth == 0), found.end()
            continue
        letter, at = name[at], at + 1
        if letter == ">" and depth:
            depth -= 1
        elif letter == "<":
            shown += "<…>" * (depth == 0)
            depth += 1
        elif depth == 0:
            shown += letter
    return shown
