"""Protocol Buffers read back as their encoding is documented, with nothing of what writes them."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

Fields = dict[int, list[int | bytes]]


def fields(data: bytes) -> Fields:
    """The fields of a message by number, in their order."""
    found: Fields = defaultdict(list)
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        assert kind in (0, 1, 2), "no other wire type is written"
        if kind == 0:
            found[key >> 3].append(varint())
        else:
            size = 8 if kind == 1 else varint()
            assert at + size <= len(data)
            found[key >> 3].append(data[at : at + size])
            at += size
    return found


def numbers(data: bytes) -> list[int]:
    """A packed repeated integer: the same varints, without keys."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


def part(data: Fields, number: int) -> Any:
    """The one value of a field; None where there is none."""
    assert len(data[number]) <= 1
    return data[number][0] if data[number] else None


def parts(data: Fields, number: int) -> Iterator[Fields]:
    """The messages that a field holds."""
    return (fields(one) for one in data[number] if isinstance(one, bytes))
