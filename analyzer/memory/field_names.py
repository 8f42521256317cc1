"""The variables and fields of structs that lie at a place in a region, as the source calls them."""

from collections.abc import Sequence
from typing import NamedTuple

from numaplan.profiler import Trace

MOST_PLACES = 16  # of which fields are looked up
MOST_NAMES = 8  # of a place


class _Field(NamedTuple):
    start: int
    bytes: int
    name: str
    item: int


class FieldNames:
    """Names by place, of the regions of a trace whose layout it knows."""

    def __init__(self, trace: Trace) -> None:
        self._layouts: dict[int, list[_Field]] = {}
        for layout, *row in trace.rows('SELECT layout, "start", bytes, name, item FROM fields ORDER BY ALL'):
            self._layouts.setdefault(int(layout), []).append(_Field(*row))
        self._regions = {
            int(region): (int(layout), int(item), str(name))
            for region, layout, item, name in trace.rows("SELECT region, layout, item, name FROM names")
        }

    def knows(self, region: int) -> bool:
        """Whether anything is known of it."""
        return region in self._regions

    def at(self, region: int, offset: int) -> str:
        """What lies there: `cells[3].hits`; empty where it is not known."""
        if region not in self._regions or offset < 0:
            return ""
        layout, item, name = self._regions[region]
        number, place = divmod(offset, item) if item > 0 else (0, offset)
        prefix = f"{name}[{number}]" if item > 0 else ""  # else fields have the variables' names
        for field in self._layouts.get(layout, ()):
            if field.start <= place < field.start + field.bytes:
                index = f"[{(place - field.start) // field.item}]" if field.item > 0 else ""
                return f"{prefix}.{field.name}{index}" if prefix else f"{field.name}{index}"
        return prefix if layout < 0 else ""


def used_fields(trace: Trace, places: Sequence[tuple[int, int]], length: int) -> list[list[str]]:
    """Of each place, what the samples in it are of: at most MOST_NAMES; none where that is not known.

    places: (region, offset), each of `length` bytes; those beyond MOST_PLACES are not looked up.
    """
    names = FieldNames(trace)
    found: list[list[str]] = [[] for _ in places]
    first = [place for place in places[:MOST_PLACES] if names.knows(place[0])]
    if not first:
        return found
    asked = " OR ".join(
        f"(region = {region} AND place BETWEEN {at} AND {at + length - 1})" for region, at in first
    )
    regions = ", ".join(str(region) for region in sorted({region for region, _ in first}))
    rows = trace.rows(
        "SELECT DISTINCT region, place FROM (SELECT s.region AS region, s.addr::HUGEINT - "
        "r.start_addr::HUGEINT AS place FROM samples s JOIN regions r ON s.region = r.region "
        f"WHERE s.region IN ({regions})) WHERE {asked} ORDER BY ALL"
    )
    for region, at in rows:
        name = names.at(int(region), int(at))
        for (own, start), listed in zip(places[:MOST_PLACES], found, strict=False):
            inside = own == region and start <= at < start + length
            if inside and name and name not in listed and len(listed) < MOST_NAMES:
                listed.append(name)
    return found
