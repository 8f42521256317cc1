"""Calls and static data of a file: what the source calls them."""

from collections.abc import Iterator

from .answers import CallSite, Frame, Variable
from .assignment import CODE, assigned
from .dwarf import forms
from .dwarf.entries import Entry
from .dwarf.info import DebugInfo
from .dwarf.sections import Sections
from .dwarf.unit import Unit
from .types import MOST_FIELDS, Field, element_name, facts, pointee, pointer_in, real, type_name

_MOST_PARTS = 128
_MOST_UNITS = 16  # that are read for small variables


def call_site(info: DebugInfo, program: Sections, after: int) -> CallSite:
    """The call that returns to an address; program: the file that has the code."""
    unit = info.unit_at(after - 1)
    if unit is None:
        return CallSite()
    scopes = [one for one in unit.scopes_at(after - 1) if one.tag != forms.LEXICAL_BLOCK]
    if not scopes:
        path, line = unit.lines.find(after - 1)
        return CallSite((Frame("", "", path, line),), (None,)) if line else CallSite()
    code = program.code_at(after, CODE)
    frames, variables = [], []
    for scope, path, line in _calls(unit, scopes, after):
        frames.append(
            Frame(unit.qualified(scope), unit.outermost(scope), path, line, _is_generic(unit, scope))
        )
        found = assigned(unit, scope, scopes[0], after, code, program.machine, path, line)
        variables.append(_of_block(unit, found) if found is not None else None)
    return CallSite(tuple(frames), tuple(variables))


def _calls(unit: Unit, scopes: list[Entry], after: int) -> Iterator[tuple[Entry, str, int]]:
    """The functions, innermost first, each with where it calls."""
    path, line = unit.lines.find(after - 1)
    for scope in reversed(scopes):
        yield scope, path, line
        path, line = unit.lines.path(scope.number(forms.CALL_FILE)), scope.number(forms.CALL_LINE)


def _is_generic(unit: Unit, function: Entry) -> bool:
    kind = real(unit, unit.type_of(function))
    return kind is not None and kind.tag == forms.POINTER_TYPE and real(unit, unit.type_of(kind)) is None


def _of_block(unit: Unit, entry: Entry) -> Variable:
    """A variable that stands for a block, or an array of pointers, each to a block: `rows[]`."""
    kind, name = unit.type_of(entry), unit.name_of(entry)
    if (found := pointer_in(unit, kind)) is not None:
        kind, name = found, f"{name}[]"
    path, line = unit.declared(entry)
    inner = facts(unit, pointee(unit, kind))
    return Variable(name, element_name(unit, kind), path, line, "", 0, inner.bytes, inner.fields)


def static_variable(info: DebugInfo, address: int) -> Variable | None:
    """The variable that is at an address."""
    for place in info.places_of(address):
        unit = info.unit_of(place)
        entry = unit.entry_around(place)
        if entry is None or entry.tag not in (forms.VARIABLE, forms.COMMON_BLOCK):
            continue
        name, kind = unit.name_of(entry), unit.type_of(entry)
        if not name:
            continue
        path, line = unit.declared(entry)
        layout = facts(unit, kind)
        around = next((one for tag, one in reversed(unit.home(entry)) if tag == forms.SUBPROGRAM), "")
        text = type_name(unit, kind) if kind is not None else ""
        return Variable(name, text, path, line, around, layout.bytes, layout.item, layout.fields)
    return None


def variables_between(info: DebugInfo, start: int, end: int) -> tuple[Field, ...]:
    """The variables at [start, end), by their distance from the start: the first of few units."""
    found: list[Field] = []
    units: set[int] = set()
    for address in info.located_between(start, end):
        units.update(info.unit_of(place).offset for place in info.places_of(address))
        if len(units) > _MOST_UNITS:
            break
        variable = static_variable(info, address)
        if variable is None:
            continue
        parts = _parts(variable, address - start)
        if len(found) + len(parts) > MOST_FIELDS:
            break
        found += parts
    return tuple(found)


def _parts(variable: Variable, start: int) -> list[Field]:
    """The fields of a struct, or of the few in an array; else the variable as a whole."""
    item = variable.item or variable.bytes
    count = variable.bytes // item if item else 0
    if not variable.fields or not 0 < count * len(variable.fields) <= _MOST_PARTS:
        return [Field(start, variable.bytes, variable.name, variable.item)]
    return [
        Field(start + at * item + one.start, one.bytes, f"{name}.{one.name}", one.item)
        for at in range(count)
        for name in [f"{variable.name}[{at}]" if variable.item else variable.name]
        for one in variable.fields
    ]
