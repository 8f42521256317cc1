"""How to give what threads share falsely a cache line each, by what the source calls it."""

import re
from collections.abc import Sequence
from pathlib import PurePath

from numaplan.analyzer import FalseSharing

LINE = 64
_ITEM = re.compile(r"^(.*?)\[\d+\](.*)$")  # of an array: counters[3].hits
# How a line of its own is asked for, by the ending of the file; else as in C.
ALIGNED = {
    "rs": f"#[repr(align({LINE}))]",
    **dict.fromkeys(("cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "C", "cu"), f"alignas({LINE})"),
}
IN_C = f"_Alignas({LINE})"
FORTRAN = ("f", "for", "f90", "f95", "f03", "f08", "F", "F90")
PADDED = (*FORTRAN, "go", "d", "zig", "nim", "java")  # nothing aligns there
_MOST_SHOWN = 3


def cure(lines: Sequence[FalseSharing], path: str = "") -> str:
    """What to change, by what samples of the lines are of; path: of the source.

    Items of an array become a line each, or each thread's part of it begins on one where threads have several
    in a line; of fields and variables that lie together, all but the first begin on one.
    """
    fields = names_of(lines)
    divided = {array for line in lines for array in _divided(line)}
    ending = PurePath(path).suffix[1:]
    if not fields:
        return _unknown(ending)
    arrays: dict[str, set[str]] = {}
    for name in fields:
        if found := _ITEM.match(name):
            arrays.setdefault(found[1], set()).add(found[2])
    single = [name for name in fields if not _ITEM.match(name)]
    said = [
        _of_parts(array) if array in divided else _of_array(array, members, ending)
        for array, members in arrays.items()
    ]
    if len(single) > 1 or (single and arrays):
        said.append(_of_neighbours(single if arrays else single[1:], ending))
    return "; ".join(said[:_MOST_SHOWN]) or _unknown(ending)


def names_of(lines: Sequence[FalseSharing]) -> list[str]:
    """What the source calls what samples of the lines are of."""
    return list(dict.fromkeys(name for line in lines for name in line.fields))


def called(lines: Sequence[FalseSharing]) -> str:
    """The arrays and variables that lines are of; empty: not known."""
    names = list(dict.fromkeys(re.split(r"[.\[]", name, maxsplit=1)[0] for name in names_of(lines)))
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(f"`{name}`" for name in names[:_MOST_SHOWN]) + more


def _divided(line: FalseSharing) -> list[str]:
    """The arrays of which threads have more than one item in a line."""
    items: dict[str, set[str]] = {}
    for name in line.fields:
        if found := _ITEM.match(name):
            items.setdefault(found[1], set()).add(found[0].removesuffix(found[2]))
    return [array for array, own in items.items() if len(own) > len(line.threads)]


def _of_parts(array: str) -> str:
    return f"begin each thread's part of `{array}` at a multiple of {LINE} bytes, and the array itself, too"


def _of_array(array: str, members: set[str], ending: str) -> str:
    if ending in PADDED:
        return f"pad each item of `{array}` to {LINE} bytes"
    word = ALIGNED.get(ending, IN_C)
    if members == {""}:
        return f"make `{array}` an array of structs with a line each: {word} before their only member"
    if ending == "rs":
        return f"{word} before the struct that `{array}` has as items"
    return f"{word} before the first member of the struct that `{array}` has as items"


def _of_neighbours(names: Sequence[str], ending: str) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:_MOST_SHOWN])
    listed += " and the others" if len(names) > _MOST_SHOWN else ""
    if ending in PADDED:
        return f"{LINE} bytes of padding before {listed}"
    if ending == "rs":
        return f"put {listed} into a struct with {ALIGNED[ending]}"
    each = " each" if len(names) > 1 else ""
    return f"{ALIGNED.get(ending, IN_C)} before {listed}{each}, and before what follows"


def _unknown(ending: str) -> str:
    """Where the source tells no names."""
    start = "start each thread's part on a line of its own"
    if ending:
        return f"{start}: {ALIGNED.get(ending, IN_C)}, or pad it to {LINE} bytes"
    return f"{start}: {IN_C} in C, alignas({LINE}) in C++, {ALIGNED['rs']} in Rust, or pad it to {LINE} bytes"
