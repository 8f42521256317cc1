"""Which variable the result of a call is assigned to.

By the code after the call where that says so (what a compiler does without optimisation, and for variables
that are no locals), by where the debug information says that the variable is from then on, and by the source
line. What is not sure is left out.
"""

import re
from collections.abc import Iterator

from .dwarf import forms
from .dwarf.entries import Entry, name_source
from .dwarf.unit import Unit
from .source_line import source_line
from .types import POINTERS, STRUCTS, member_at, pointee, real
from .variables import frame_shift, globals_of, location, place_of, variables_in

CODE = 48  # bytes of code after the call that are looked at
_X86_64 = 62
_SLOT = re.compile(
    rb"\x48\x89(?:\x45(?P<near>.)|\x85(?P<far>.{4})|\x44\x24(?P<stack>.)|\x84\x24(?P<deep>.{4}))", re.DOTALL
)
_GLOBAL = re.compile(rb"\x48\x89\x05(?P<to>.{4})", re.DOTALL)
# mov %rax,%REG; mov BASE,%rax; mov %REG,AT(%rax)
_MEMBER = re.compile(
    rb"\x48\x89(?P<kept>[\xc1\xc2\xc6\xc7])\x48\x8b(?:\x45(?P<near>.)|\x85(?P<far>.{4})|\x05(?P<to>.{4}))"
    rb"\x48\x89(?P<form>[\x08\x10\x30\x38\x48\x50\x70\x78])(?P<at>.?)",
    re.DOTALL,
)
_TARGET = re.compile(r"(?:\b|(?<=[.>]))([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*(?::[^=:]*)?=(?!=)")
_WORD = re.compile(r"[A-Za-z_]\w*")


def assigned(
    unit: Unit, scope: Entry, function: Entry, after: int, code: bytes, machine: int, path: str, line: int
) -> Entry | None:
    """The variable or member of `scope`, a function or one inlined into it, that takes the result of a call.

    The call is on a line of a file and returns to `after`, to `code`.
    """
    own = list(variables_in(scope))
    found = _by_code(unit, function, own, after, code) if machine == _X86_64 else None
    found = found or _by_register(unit, own, after)
    if found is None:
        for written in name_source(scope, unit.find):  # with what was optimised away
            if written is not scope:
                own += variables_in(written)
        found = _by_line(unit, own, path, line)
    return found


# ---- by code ----


def _by_code(unit: Unit, function: Entry, own: list[Entry], after: int, code: bytes) -> Entry | None:
    for store in (_GLOBAL.match(code), *_GLOBAL.finditer(_until_call(code))):
        if store and (found := _global_at(unit, after + store.end() + _signed(store["to"]))):
            return found
    if match := _SLOT.match(code):
        return _in_slot(unit, function, own, *_slot(match))
    if match := _MEMBER.match(code):
        if match["to"]:
            behind = match.start("to") + 4
            holder = _global_at(unit, after + behind + _signed(match["to"]))
        else:
            holder = _in_slot(unit, function, own, 6, _signed(match["near"] or match["far"]))
        far = match["form"][0] & 0x40
        kept = {0xC1: 1, 0xC2: 2, 0xC6: 6, 0xC7: 7}[match["kept"][0]]
        if holder is not None and match["form"][0] >> 3 & 7 == kept:
            return member_at(unit, pointee(unit, unit.type_of(holder)), _signed(match["at"]) if far else 0)
    return None


def _until_call(code: bytes) -> bytes:
    """The code before what may be a call, which has another result."""
    return re.split(rb"[\xe8\xff]", code, maxsplit=1)[0] if b"\x48\x89\x05" in code else b""


def _slot(match: re.Match[bytes]) -> tuple[int, int]:
    near = match["near"] or match["far"]
    return (6, _signed(near)) if near else (7, _signed(match["stack"] or match["deep"]))


def _in_slot(unit: Unit, function: Entry, own: list[Entry], register: int, distance: int) -> Entry | None:
    base, shift = frame_shift(function)
    if base != register:
        return None
    for one in own:
        start = location(unit, one).frame
        if start is not None and (found := _part(unit, one, distance + shift - start)) is not None:
            return found
    return None


def _global_at(unit: Unit, address: int) -> Entry | None:
    for one in globals_of(unit):
        start = location(unit, one).address
        if start >= 0 and (found := _part(unit, one, address - start)) is not None:
            return found
    return None


def _part(unit: Unit, entry: Entry, distance: int) -> Entry | None:
    """The variable itself where the distance from its start is 0, or the member of it that begins there."""
    if distance < 0:
        return None
    kind = unit.type_of(entry)
    member = member_at(unit, kind, distance)
    if member is not None and _may_hold(unit, member):
        return member
    return entry if distance == 0 else None


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


# ---- by register ----


def _by_register(unit: Unit, own: list[Entry], after: int) -> Entry | None:
    """The one whose value is in the register of results from the return on."""
    found = []
    for one in own:
        where = one.values.get(forms.LOCATION)
        if isinstance(where, int) and any(
            start == after and place_of(unit, said).register == 0
            for start, _, said in unit.locations_of(where)
        ):
            found.append(one)
    return found[0] if len({unit.name_of(one) for one in found}) == 1 else None


# ---- by the line ----


def _by_line(unit: Unit, own: list[Entry], path: str, line: int) -> Entry | None:
    text = source_line(path, line, unit.file.changed_ns)
    words = _WORD.findall(text)
    declared = [
        one
        for one in own
        if unit.declared(one) == (path, line)
        and _may_hold(unit, one)
        and (not text or unit.name_of(one) in words)  # else the compiler made it, as for a loop
    ]
    if len({unit.name_of(one) for one in declared}) == 1:
        return declared[0]
    targets = [match[1] for match in _TARGET.finditer(text)]
    named = dict.fromkeys(targets or words)
    found = {name: entry for entry in _candidates(unit, own) if (name := unit.name_of(entry)) in named}
    return next(iter(found.values())) if len(found) == 1 else None


def _candidates(unit: Unit, own: list[Entry]) -> Iterator[Entry]:
    """Variables that may hold a block, and members of their types."""
    seen = set()
    for one in (*globals_of(unit), *own):
        if _may_hold(unit, one):
            yield one
        holder = real(unit, unit.type_of(one))
        if holder is not None and holder.tag in POINTERS:
            holder = real(unit, unit.type_of(holder))
        if holder is not None and holder.tag in STRUCTS and holder.offset not in seen:
            seen.add(holder.offset)
            yield from (
                member for member in holder.children if member.tag == forms.MEMBER and _may_hold(unit, member)
            )


def _may_hold(unit: Unit, entry: Entry) -> bool:
    """Whether a variable can stand for a block: a pointer, a container, an array with a descriptor."""
    kind = real(unit, unit.type_of(entry))
    return kind is not None and kind.tag in (*POINTERS, *STRUCTS, forms.ARRAY_TYPE)
