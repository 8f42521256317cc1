"""Which function of a chain of calls asked for a block: the first outside of libraries and of what only
passes blocks on.
"""

import re
from collections.abc import Sequence

from .answers import CallSite, Frame, Variable

LIBRARY_FOLDERS = (
    "/usr/include/", "/usr/lib/", "/usr/lib64/", "/usr/local/include/", "/opt/", "/rustc/", "/usr/src/",
)  # fmt: skip
LIBRARY_PARTS = ("/rustlib/src/", "/.cargo/registry/", "/.rustup/", "/include/c++/", "/site-packages/")
_NAMESPACES = ("std", "__gnu_cxx", "__cxxabiv1", "alloc", "core", "boost", "tbb", "Eigen", "hashbrown")
_WRAPPER = re.compile(
    r"(?:\w*?_)?(?:x|z|s|safe|my|do|try|checked|check|must|die|err|ck|e|util|mem|mm|p|k|g|av|wrap)?_?"
    r"(?:m|c|re|v|b|z)?(?:array_?)?(?:aligned_?)?(?:alloc|allocate|memalign|new_array|allocator)(?:ate|ation)?"
    r"(?:_(?:or_die|or_abort|safe|aligned|array|buffer|block|pages?|mem|memory|bytes|zeroed|huge|local|n|impl|inner))*"
    r"(?:\d+|_?aligned|_?array|f|n|s)?",
    re.IGNORECASE,
)
_PASSING = re.compile(r"lib(?:c|stdc\+\+|c\+\+|c\+\+abi|gfortran|c-[\d.]+|m|quadmath)\.so[.\d]*|ld-linux.*")


def asked_for(chain: Sequence[tuple[str, CallSite]]) -> tuple[Frame, Variable | None] | None:
    """Who asked, and the variable that took the block; None: nobody is known.

    chain: (module's name, call), innermost first.
    """
    last: tuple[Frame, Variable | None] | None = None
    is_sure = True  # that what the frames until here return is the block
    for module, site in chain:
        for frame, variable in zip(site.frames, site.variables, strict=False):
            if not frame.line:
                continue
            taken = (frame, variable if is_sure else None)
            if not is_library(frame) and not is_wrapper(frame):
                return taken
            last = None if is_library(frame) else taken
        if not site.frames and ".so" in module and not _PASSING.fullmatch(module):
            is_sure = False
    return last


def is_system(path: str) -> bool:
    """Whether a module is a library of the system: what it has is of no interest to who wrote the program."""
    return path.startswith(("/lib", "/usr/lib")) and ".so" in path.rpartition("/")[2]


def is_library(frame: Frame) -> bool:
    """Whether it is of the system's or language's libraries, not of the program."""
    return frame.outer in _NAMESPACES or is_library_path(frame.path)


def is_library_path(path: str) -> bool:
    """Whether a source file is of the system's or language's libraries, not of the program."""
    return path.startswith(LIBRARY_FOLDERS) or any(part in path for part in LIBRARY_PARTS)


def is_wrapper(frame: Frame) -> bool:
    """Whether a function only passes blocks on."""
    name = frame.function.rpartition("::")[2]
    return frame.generic or name.startswith("operator new") or _WRAPPER.fullmatch(name) is not None
