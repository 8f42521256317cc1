"""What a block holds that no variable is known to take: as the containers that asked for it are called."""

import re
from collections.abc import Iterable

# Of C++: an allocator of the elements, make_unique and make_shared of an array; of Rust: a vector of them.
_ELEMENTS = (
    (re.compile(r"(?:__)?(?:new_)?allocator<(.+)>::allocate(?:_at_least)?"), "{}[]"),
    (re.compile(r"make_(?:unique|shared)(?:_for_overwrite)?<(.+?) ?\[\].*"), "{}[]"),
    (re.compile(r"(?:RawVec|Vec)<(.+)>::\w+(?:<.*>)?"), "[{}]"),
)
_INSIDE = re.compile(r"(?:std|__gnu_cxx|hashbrown|alloc|core)::|_")  # what containers are made of themselves
_MOST = 60  # letters


def element_type(functions: Iterable[str]) -> str:
    """`Cell[]`, or `[Body]` in Rust; empty where it is not known. functions: innermost first."""
    for function in functions:
        for pattern, shown in _ELEMENTS:
            if found := pattern.fullmatch(function):
                name = _first(found[1]).strip()
                known = 0 < len(name) <= _MOST and not _INSIDE.match(name)
                return shown.format(name) if known else ""
    return ""


def _first(arguments: str) -> str:
    """The first of a template's arguments."""
    depth = 0
    for at, letter in enumerate(arguments):
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and not depth:
            return arguments[:at]
    return arguments
