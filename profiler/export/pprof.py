"""A trace as pprof reads it (profile.proto): by call stack, with thread and region as tags."""

import gzip

from ..trace.reader import Trace
from . import protobuf as wire
from .code_places import Module, Place
from .profile import VALUES, profile_rows

# Fields of profile.proto.
SAMPLE_TYPE, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING = 1, 2, 3, 4, 5, 6
DURATION, PERIOD_TYPE, PERIOD, DEFAULT_TYPE = 10, 11, 12, 14
LEAST_ID = 8  # letters; pprof itself falls over one of a single letter
LINES = "lines taken from other threads"


class _Tables:
    """What samples refer to, each once."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {"": 0}
        self._mappings: dict[Module, int] = {}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[Place, int] = {}
        self.entries = bytearray()

    def string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def strings(self) -> bytes:
        return b"".join(wire.text(STRING, text) for text in self._strings)

    def location(self, place: Place) -> int:
        if place not in self._locations:
            number = self._locations[place] = len(self._locations) + 1
            line = wire.number(1, self._function(place.name, place.path)) + wire.number(2, place.line)
            content = wire.number(1, number)
            if place.module is not None:
                content += wire.number(2, self._mapping(place.module))
            content += wire.number(3, place.address) + wire.message(4, line)
            self.entries += wire.message(LOCATION, content)
        return self._locations[place]

    def _function(self, name: str, path: str) -> int:
        if (name, path) not in self._functions:
            number = self._functions[name, path] = len(self._functions) + 1
            named = wire.number(2, self.string(name)) + wire.number(3, self.string(name))
            content = wire.number(1, number) + named + wire.number(4, self.string(path))
            self.entries += wire.message(FUNCTION, content)
        return self._functions[name, path]

    def _mapping(self, module: Module) -> int:
        if module not in self._mappings:
            number = self._mappings[module] = len(self._mappings) + 1
            where = wire.number(2, module.start) + wire.number(3, module.end)
            named = wire.number(5, self.string(module.name))
            if len(module.build_id) >= LEAST_ID:
                named += wire.number(6, self.string(module.build_id))
            known = b"".join(wire.number(field, 1) for field in (7, 8, 9))  # it needs no symbols
            self.entries += wire.message(MAPPING, wire.number(1, number) + where + named + known)
        return self._mappings[module]

    def value_type(self, name: str) -> bytes:
        return wire.number(1, self.string(name)) + wire.number(2, self.string("count"))


def pprof(trace: Trace) -> bytes:
    """The profile, packed. Accesses and remote ones are samples, of which each stands for `period`."""
    tables = _Tables()
    types = b"".join(wire.message(SAMPLE_TYPE, tables.value_type(name)) for name in VALUES)
    samples, remote = bytearray(), 0
    for row in profile_rows(trace):
        remote += row.remote
        stack = [tables.location(place) for place in (row.place or Place(LINES, 0), *row.callers)]
        labels = {"thread": row.thread, "region": row.region}
        content = wire.packed(1, stack) + wire.packed(2, row.values)
        for key, value in labels.items():
            if value:
                label = wire.number(1, tables.string(key)) + wire.number(2, tables.string(value))
                content += wire.message(3, label)
        samples += wire.message(SAMPLE, content)
    facts = wire.number(DEFAULT_TYPE, tables.string("remote" if remote else "accesses"))
    if trace.meta.get("clock") != "accesses":
        facts += wire.number(DURATION, trace.duration_ns)
    facts += wire.message(PERIOD_TYPE, tables.value_type("accesses"))
    facts += wire.number(PERIOD, max(1, int(trace.meta.get("period", "1"))))
    content = types + bytes(samples) + bytes(tables.entries) + tables.strings() + facts
    return gzip.compress(content, mtime=0)
