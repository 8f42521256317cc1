"""The names of a recording's regions and code, for its trace."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..identity.environment import LIBRARY
from ..identity.records import Identity, ModuleRecord, RegionRecord
from ..trace.function_names import short_function
from .answers import CallSite, Frame, Variable
from .choosing import asked_for, is_system
from .dwarf.budget import Budget
from .element_types import element_type
from .module_names import ModuleNames
from .types import Field

_BLOCKS = ("heap", "mmap", "file")
_MOST_LAYOUTS = 4096
_MOST_SHOWN = 3  # variables
_OURS = (str(LIBRARY), str(LIBRARY.resolve()))  # no line of it is what anybody looks for
_LINE = 4  # its place in a row of `names` without the region


@dataclass
class NameTables:
    """Rows of the tables of a trace that hold names."""

    names: list[tuple[object, ...]] = field(default_factory=list)
    fields: list[tuple[object, ...]] = field(default_factory=list)
    chains: list[tuple[object, ...]] = field(default_factory=list)


class SourceNames:
    """Looks names up in the debug information of the modules of a recording."""

    def __init__(self, identity: Identity, *, ask_server: bool = False, budget: Budget | None = None) -> None:
        self._identity, self._ask_server = identity, ask_server
        self._budget = budget or Budget()
        self._modules: dict[str, ModuleNames] = {}
        self._chains: dict[tuple[str, ...], int] = {}
        self._layouts: dict[tuple[Field, ...], int] = {}
        self._asked: dict[tuple[object, ...], tuple[object, ...]] = {}
        self.tables = NameTables()

    def __enter__(self) -> "SourceNames":
        return self

    def __exit__(self, *_: object) -> None:
        for module in self._modules.values():
            module.save()

    def name_regions(self, regions: Sequence[RegionRecord]) -> NameTables:
        """The rows for regions, numbered as they come."""
        for number, region in enumerate(regions):
            if region.kind in _BLOCKS:
                row = self._block(region)
            elif region.kind == "static":
                row = self._static(region)
            else:
                continue
            if row is not None:
                self.tables.names.append((number, *row))
        return self.tables

    def line(self, path: str, address: int) -> tuple[str, str, int]:
        """Function, path and line of code of a module; address: in its file. "", "" and 0: not known."""
        return ("", "", 0) if is_system(path) or path in _OURS else self._module(path).line(address)

    def _module(self, path: str) -> ModuleNames:
        if path not in self._modules:
            self._modules[path] = ModuleNames(path, self._budget, ask_server=self._ask_server)
        return self._modules[path]

    @cached_property
    def _by_name(self) -> dict[tuple[int, str], ModuleRecord]:
        return {(module.pid, module.name): module for module in self._identity.modules}

    # ---- regions ----

    def _block(self, region: RegionRecord) -> tuple[object, ...] | None:
        sites = region.chain or (region.name,)
        modules = [self._by_name.get((region.pid, site.rpartition("+")[0])) for site in sites]
        key = (sites, tuple(module.path if module else "" for module in modules))
        if key not in self._asked:
            self._asked[key] = self._new_block(sites, modules, bool(region.chain))
        row = self._asked[key]
        return row if row[_LINE] or row[0] != -1 else None

    def _new_block(
        self, sites: Sequence[str], modules: Sequence[ModuleRecord | None], is_chain: bool
    ) -> tuple[object, ...]:
        calls = [self._call(site, module) for site, module in zip(sites, modules, strict=True)]
        chain = -1
        if is_chain:
            chain = self._chains.setdefault(tuple(sites), len(self._chains))
            for depth, (site, call) in enumerate(zip(sites, calls, strict=True)):
                self.tables.chains += _frames(chain, depth, site, call)
        found = asked_for([(site.rpartition("+")[0], call) for site, call in zip(sites, calls, strict=True)])
        if found is None:
            return (chain, "", "", "", 0, "", 0, -1)
        frame, variable = found
        variable = variable or Variable("", element_type(_functions_until(frame, calls)))
        layout = self._layout(variable.fields)
        return (
            chain,
            variable.name,
            variable.type,
            frame.path,
            frame.line,
            frame.function,
            variable.item,
            layout,
        )

    def _call(self, site: str, module: ModuleRecord | None) -> CallSite:
        offset = site.rpartition("+")[2]
        if module is None or is_system(module.path):
            return CallSite()
        return self._module(module.path).site(int(offset, 16))

    def _static(self, region: RegionRecord) -> tuple[object, ...] | None:
        module = self._by_name.get((region.pid, region.name.partition(":")[0]))
        if module is None or is_system(module.path):
            return None
        names, address = self._module(module.path), region.start_addr - module.bias
        fields, item = names.statics(address, region.bytes), 0
        if region.name.partition(":")[2].startswith("."):  # small variables, not told apart
            whole = _variables(fields)
            if len(whole) != 1:
                short = list(dict.fromkeys(map(short_function, whole)))
                shown = ", ".join(short[:_MOST_SHOWN]) + ", …" * (len(short) > _MOST_SHOWN)
                return (-1, shown, "", "", 0, "", 0, self._layout(fields)) if fields else None
            address += fields[0].start
        found = names.static(address)
        if found is None or found.bytes > region.bytes:
            return None
        if found.item and address == region.start_addr - module.bias:
            fields, item = found.fields, found.item
        layout = self._layout(fields)
        return (-1, found.name, found.type, found.path, found.line, found.function, item, layout)

    def _layout(self, fields: tuple[Field, ...]) -> int:
        """The number of a layout, -1 for none."""
        if not fields:
            return -1
        if fields not in self._layouts:
            if len(self._layouts) >= _MOST_LAYOUTS:
                return -1
            number = self._layouts[fields] = len(self._layouts)
            self.tables.fields += [(number, one.start, one.bytes, one.name, one.item) for one in fields]
        return self._layouts[fields]


def _variables(fields: Sequence[Field]) -> list[str]:
    """The variables that these are, or are of."""
    return list(dict.fromkeys(re.split(r"[.\[]", field.name, maxsplit=1)[0] for field in fields))


def _functions_until(last: Frame, calls: Sequence[CallSite]) -> Iterator[str]:
    """The functions of a chain that run inside of one of it, innermost first."""
    for call in calls:
        for frame in call.frames:
            if frame is last:
                return
            yield frame.function


def _frames(chain: int, depth: int, site: str, call: CallSite) -> Iterator[tuple[object, ...]]:
    """The functions of one call of a chain, those inlined into another first."""
    if not call.frames:
        yield chain, depth, site, "", "", 0
    for frame in call.frames:
        yield chain, depth, site, frame.function, frame.path, frame.line
