"""Types as people write them, and the fields of structs."""

import re
from dataclasses import dataclass
from math import prod

import msgspec

from .dwarf import forms
from .dwarf.entries import Entry
from .dwarf.unit import Unit

_LINKS = 16  # from a type to what it is made of
_NESTED = 4  # structs in structs whose fields are told
MOST_FIELDS = 256
_SAME = (forms.CONST_TYPE, forms.VOLATILE_TYPE, forms.RESTRICT_TYPE, forms.ATOMIC_TYPE)
POINTERS = (forms.POINTER_TYPE, forms.REFERENCE_TYPE, forms.RVALUE_TYPE)
STRUCTS = (forms.STRUCTURE_TYPE, forms.CLASS_TYPE, forms.UNION_TYPE)
_ALLOCATOR = re.compile(r", ?(std::(?:allocator|default_delete)<.*>|alloc::alloc::Global)\s*>$")
_PATH = re.compile(r"\b(?:[a-z_0-9]+::)+(?=[A-Za-z])")


class Field(msgspec.Struct, frozen=True, array_like=True):
    """A field of a struct: where it begins; item: bytes of one of its items where it is an array, else 0."""

    start: int
    bytes: int
    name: str
    item: int = 0


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """A type; bytes: 0 where not known; fields: of one item where it is an array of `item` bytes each."""

    name: str
    bytes: int = 0
    item: int = 0
    fields: tuple[Field, ...] = ()


def bare(unit: Unit, entry: Entry | None, *, through: tuple[int, ...] = _SAME) -> Entry | None:
    """A type without what makes no other of it (const, volatile); through: the tags that are left out."""
    for _ in range(_LINKS):
        if entry is None or entry.tag not in through:
            return entry
        entry = unit.type_of(entry)
    return None


def real(unit: Unit, entry: Entry | None) -> Entry | None:
    """The type behind typedefs, too."""
    return bare(unit, entry, through=(*_SAME, forms.TYPEDEF))


def type_name(unit: Unit, entry: Entry | None, depth: int = 0) -> str:
    """As people write it, without qualifiers; empty where it is not known, `void` for none."""
    entry = bare(unit, entry)
    if depth > _LINKS:
        return ""
    if entry is None:
        return "void"
    if entry.tag in POINTERS:
        inner = type_name(unit, unit.type_of(entry), depth + 1)
        named = unit.name_of(entry)  # as Rust does
        return _short(named) if named else f"{inner}{'*' if entry.tag == forms.POINTER_TYPE else '&'}"
    if entry.tag == forms.ARRAY_TYPE:
        inner = type_name(unit, unit.type_of(entry), depth + 1)
        return inner + "".join(f"[{count or ''}]" for count in _counts(unit, entry))
    name = _short(unit.name_of(entry))
    outer = unit.home(entry)[:1]
    return f"std::{name}" if name and outer and outer[0][1] == "std" else name


def element_name(unit: Unit, entry: Entry | None) -> str:
    """Of a variable that stands for a block, the type of what lies in the block: `double[]`, `Vec<f64>`."""
    found = real(unit, entry)
    if found is None:
        return ""
    if found.tag in POINTERS and not unit.name_of(found):
        inner = type_name(unit, unit.type_of(found))
        return "" if inner in ("", "void") else f"{inner}[]"
    return type_name(unit, entry)


def pointer_in(unit: Unit, entry: Entry | None) -> Entry | None:
    """The type of an item, where a variable is an array of pointers."""
    found = real(unit, entry)
    if found is None or found.tag != forms.ARRAY_TYPE:
        return None
    item = unit.type_of(found)
    inner = real(unit, item)
    return item if inner is not None and inner.tag in POINTERS else None


def pointee(unit: Unit, entry: Entry | None) -> Entry | None:
    """What a pointer, an array or a container consists of."""
    found = real(unit, entry)
    if found is None:
        return None
    if found.tag in (*POINTERS, forms.ARRAY_TYPE):
        return unit.type_of(found)
    arguments = [child for child in found.children if child.tag == forms.TEMPLATE_TYPE]
    return unit.type_of(arguments[0]) if arguments and found.tag in STRUCTS else None


def facts(unit: Unit, entry: Entry | None) -> TypeFacts:
    """A type with its layout."""
    found, item = real(unit, entry), 0
    if found is not None and found.tag == forms.ARRAY_TYPE:
        found = real(unit, unit.type_of(found))
        item = size_of(unit, found)
    return TypeFacts(type_name(unit, entry), size_of(unit, entry), item, fields_of(unit, found))


def size_of(unit: Unit, entry: Entry | None, depth: int = 0) -> int:
    """In bytes; 0 where it is not known."""
    found = real(unit, entry)
    if found is None or depth > _LINKS:
        return 0
    if size := found.number(forms.BYTE_SIZE):
        return size
    if found.tag in POINTERS:
        return 8
    if found.tag == forms.ARRAY_TYPE:
        return prod(_counts(unit, found)) * size_of(unit, unit.type_of(found), depth + 1)
    return 0


def fields_of(unit: Unit, entry: Entry | None) -> tuple[Field, ...]:
    """The fields of a struct and of the structs in it, at most MOST_FIELDS, by where they begin."""
    found: list[Field] = []
    _add_fields(unit, entry, 0, "", 0, found)
    return tuple(sorted(found, key=lambda field: (field.start, field.bytes)))


def _add_fields(unit: Unit, entry: Entry | None, at: int, name: str, depth: int, found: list[Field]) -> None:
    if entry is None or entry.tag not in STRUCTS or depth > _NESTED:
        return
    for child in entry.children:
        if child.tag not in (forms.MEMBER, forms.INHERITANCE) or len(found) >= MOST_FIELDS:
            continue
        place = child.values.get(forms.DATA_MEMBER_LOCATION, 0)
        kind = real(unit, unit.type_of(child))
        if not isinstance(place, int) or kind is None or child.values.get(forms.DECLARATION):
            continue
        own = unit.name_of(child)
        full = f"{name}.{own}" if name and own else own or name
        if kind.tag in STRUCTS and depth < _NESTED and any(one.tag == forms.MEMBER for one in kind.children):
            _add_fields(unit, kind, at + place, full, depth + 1, found)
        elif full and 0 <= place < 1 << 40:
            item = size_of(unit, unit.type_of(kind)) if kind.tag == forms.ARRAY_TYPE else 0
            found.append(Field(at + place, size_of(unit, kind), full, item))


def member_at(unit: Unit, entry: Entry | None, place: int) -> Entry | None:
    """The member of a struct that begins there."""
    found = real(unit, entry)
    for child in found.children if found is not None and found.tag in STRUCTS else ():
        if child.tag == forms.MEMBER and child.number(forms.DATA_MEMBER_LOCATION) == place:
            return child
    return None


def _counts(unit: Unit, entry: Entry) -> list[int]:
    """Of each dimension; 0: not known."""
    found = []
    for child in entry.children:
        if child.tag == forms.SUBRANGE_TYPE:
            first = child.number(forms.LOWER_BOUND, unit.first_index)
            count = (
                _constant(child, forms.COUNT) or _constant(child, forms.UPPER_BOUND, first - 1) - first + 1
            )
            found.append(count if 0 < count < 1 << 48 else 0)
    return found or [0]


def _constant(entry: Entry, attribute: int, otherwise: int = 0) -> int:
    """A number; otherwise: where there is none, or a variable has it."""
    is_variable = isinstance(entry.values.get(attribute), forms.Reference)
    return otherwise if is_variable else entry.number(attribute, otherwise)


def _short(name: str) -> str:
    """Without the allocators and paths that people do not write."""
    name = name.replace(" []", "[]")
    for _ in range(_LINKS):
        shorter = _ALLOCATOR.sub(">", name)
        if shorter == name:
            break
        name = shorter
    return (
        name
        if name.startswith("std::")
        else _PATH.sub("", name)
        if "alloc::" in name or "core::" in name
        else name
    )
