"""The events of a recording and what to call them: attrs and names come from many places in a file."""

import struct
from typing import Any

from .attrs import SMALLEST, Attr, parse_attr
from .names import TRACEPOINT, event_name

_UPDATE_NAME = 2
_MOST_EVENTS = 4096  # of a pipe, where each one may come between samples
_OLD_TYPE = struct.Struct("Q64s")


class Events:
    """Collects attrs (header or ATTR records) and names (features, EVENT_UPDATE, tables of old versions)."""

    def __init__(self, attrs: list[Attr], order: str) -> None:
        self.attrs = attrs
        self._order = order
        self._described: list[Attr] = []
        self._names_by_id: dict[int, str] = {}
        self._names_by_config: dict[int, str] = {}

    def add_record(self, record: bytes) -> bool:
        """Take an ATTR record of a pipe; False when its attr does not fit in it, or there are too many."""
        if len(record) < 8 + SMALLEST or len(self.attrs) >= _MOST_EVENTS:
            return False
        (size,) = struct.unpack_from(self._order + "I", record, 12)
        size = size or SMALLEST
        if not SMALLEST <= size <= len(record) - 8:
            return False
        attr = parse_attr(record[8 : 8 + size], self._order)
        count = (len(record) - 8 - size) // 8
        attr.ids = list(struct.unpack_from(f"{self._order}{count}Q", record, 8 + size))
        self.attrs.append(attr)
        return True

    def describe(self, described: list[Attr]) -> None:
        """Take the events of EVENT_DESC, and from them the ids that could not be read elsewhere."""
        self._described = described
        if [attr.config for attr in described] == [attr.config for attr in self.attrs]:
            for attr, same in zip(self.attrs, described, strict=True):
                attr.ids = attr.ids or same.ids

    def update(self, record: bytes) -> None:
        """Take an EVENT_UPDATE record."""
        if len(record) > 24:
            kind, number = struct.unpack_from(self._order + "2Q", record, 8)
            if kind == _UPDATE_NAME:
                self._names_by_id[number] = _text(record[24:])

    def add_types(self, table: bytes) -> None:
        """Take what perf before 3.11 wrote: pairs of a config and a name of 64 bytes."""
        whole = len(table) // _OLD_TYPE.size * _OLD_TYPE.size
        for config, name in struct.iter_unpack(self._order + "Q64s", table[:whole]):
            self._names_by_config.setdefault(config, _text(name))

    def names(self, header: dict[str, Any]) -> list[str]:
        """The name of each event, in the order of the attrs."""
        pmus = header.get("pmu_mappings", {})
        named = {number: attr.name for attr in self._described for number in attr.ids}
        same_order = [attr.config for attr in self._described] == [attr.config for attr in self.attrs]
        names = []
        for index, attr in enumerate(self.attrs):
            by_id = [found[n] for found in (self._names_by_id, named) for n in attr.ids if n in found]
            by_place = self._described[index].name if same_order else ""
            old = self._names_by_config.get(attr.config, "") if attr.type == TRACEPOINT else ""
            names.append(next(filter(None, [*by_id, by_place, old]), "") or event_name(attr, pmus))
        return names


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")
