"""The head of a perf.data file: magic, sections, the events' attrs with their ids."""

import struct
from dataclasses import dataclass, field

from .attrs import LARGEST, SMALLEST, Attr, parse_attr
from .source import MAGIC, OLD_MAGIC, PerfDataError, no_recording

_PIPE_HEADER = 16
_FILE_HEADER = 104
_SECTION = 16
_FEATURE_BITS = 256
_HOSTNAME = 3
_HINT = "give a file that perf record wrote"


@dataclass
class Head:
    """Where things are. order: '<' or '>'; features: number -> (offset, size) of its section."""

    order: str
    pipe: bool
    data_start: int
    data_end: int
    attrs: list[Attr] = field(default_factory=list)
    features: dict[int, tuple[int, int]] = field(default_factory=dict)
    event_types: tuple[int, int] = (0, 0)
    unfinished: bool = False


def read_head(data: memoryview, name: str, warnings: list[str]) -> Head:
    """The head of the file in `data`; raises PerfDataError when no record could be read with it."""
    order = _byte_order(data)
    if order is None:
        raise no_recording(name, bytes(data[:8]))
    if len(data) < _PIPE_HEADER:
        raise PerfDataError(f"{name}: cut short in the header (at {len(data)} bytes)", _HINT)
    (size,) = struct.unpack_from(order + "Q", data, 8)
    if size == _PIPE_HEADER:
        return Head(order=order, pipe=True, data_start=_PIPE_HEADER, data_end=len(data))
    if len(data) < _FILE_HEADER:
        raise PerfDataError(f"{name}: cut short in the header (at {len(data)} bytes)", _HINT)
    words = struct.unpack_from(order + "7Q", data, 16)
    entry, attrs_at, attrs_size, start, length, types_at, types_size = words
    head = Head(order=order, pipe=False, data_start=start, data_end=start + length)
    head.event_types = (types_at, types_size)
    _find_data(head, len(data), length, name, warnings)
    head.attrs = _read_attrs(data, order, (entry, attrs_at, attrs_size), name, warnings)
    if not head.unfinished:
        head.features = _read_features(data, head, start + length, warnings)
    return head


def _byte_order(data: memoryview) -> str | None:
    magic = bytes(data[:8])
    if magic == OLD_MAGIC and len(data) >= _PIPE_HEADER:
        (size,) = struct.unpack_from(">Q", data, 8)
        return ">" if size in (_PIPE_HEADER, _FILE_HEADER) else "<"
    return MAGIC.get(magic)


def _find_data(head: Head, file_size: int, length: int, name: str, warnings: list[str]) -> None:
    if not _FILE_HEADER <= head.data_start <= file_size:
        raise PerfDataError(f"{name}: data section at offset {head.data_start} of {file_size}", _HINT)
    if length == 0 and file_size > head.data_start:
        head.unfinished = True
        warnings.append("the recording was not finished (data size 0): read to the end of the file")
        head.data_end = file_size
    elif head.data_end > file_size:
        head.unfinished = True
        warnings.append(
            f"the data section ends at {head.data_end}, the file at {file_size}: it was cut short"
        )
        head.data_end = file_size


def _read_attrs(
    data: memoryview, order: str, section: tuple[int, int, int], name: str, warnings: list[str]
) -> list[Attr]:
    entry, at, size = section
    attr_size = entry - _SECTION
    if not SMALLEST <= attr_size <= LARGEST:
        raise PerfDataError(f"{name}: attr entries of {entry} bytes (offset 16)", _HINT)
    if at > len(data) or size > len(data) - at:
        raise PerfDataError(f"{name}: attrs at offset {at}, {size} bytes, beyond the end of the file", _HINT)
    attrs = []
    room = len(data) // 8  # ids of honest files stand apart, so all together fit the file
    for place in range(at, at + size - entry + 1, entry):
        attr = parse_attr(bytes(data[place : place + attr_size]), order)
        ids_at, ids_size = struct.unpack_from(order + "2Q", data, place + attr_size)
        attr.ids = _read_ids(data, order, (ids_at, ids_size), room, warnings)
        room -= len(attr.ids)
        attrs.append(attr)
    if not attrs:
        raise PerfDataError(f"{name}: no events (attrs at offset {at}, {size} bytes)", _HINT)
    return attrs


def _read_ids(
    data: memoryview, order: str, section: tuple[int, int], room: int, warnings: list[str]
) -> list[int]:
    at, size = section
    if at > len(data) or size > len(data) - at or size % 8 or size // 8 > room:
        warnings.append(f"ids of an event at offset {at}, {size} bytes: not readable, left out")
        return []
    return list(struct.unpack_from(f"{order}{size // 8}Q", data, at))


def _feature_numbers(data: memoryview, order: str) -> list[int]:
    """The bits set in the table, an array of the writer's longs: of 32 bits if only then HOSTNAME is set."""
    choices = []
    for form, width in (("4Q", 64), ("8I", 32)):
        words = struct.unpack_from(order + form, data, 72)
        choices.append([bit for bit in range(_FEATURE_BITS) if words[bit // width] >> bit % width & 1])
    wide, narrow = choices
    return narrow if _HOSTNAME in narrow and _HOSTNAME not in wide else wide


def _read_features(data: memoryview, head: Head, at: int, warnings: list[str]) -> dict[int, tuple[int, int]]:
    """Sections of the features whose bits are set, in the order of the bits, behind the data."""
    numbers = _feature_numbers(data, head.order)
    features = {}
    for index, number in enumerate(numbers):
        place = at + index * _SECTION
        if place + _SECTION > len(data):
            warnings.append(f"the file ends within its table of features (offset {place})")
            break
        offset, size = struct.unpack_from(head.order + "2Q", data, place)
        if offset > len(data) or size > len(data) - offset:
            warnings.append(f"feature {number} at offset {offset}, {size} bytes: beyond the end, left out")
        else:
            features[number] = (offset, size)
    return features
