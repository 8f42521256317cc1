"""JSON documents with something in them that nobody who means well would write."""

import json
import random
from typing import Any

_TEXTS = (
    "", "\0", "\x1b]0;owned\x07\x1b[2J", "\u202e\u2028", "../../../etc/passwd", "/dev/full", "%n%s%r", "0",
    "-1", "0.1", "'; DROP TABLE threads; --", "<script>alert(1)</script>", "NaN", "heap", "p0", "r0",
    "4x2", "$(touch owned)",
)  # fmt: skip
_NUMBERS = (
    0, -1, 1, 2, 63, 64, 4095, 1 << 16, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 53) + 1,
    (1 << 63) - 1, 1 << 63, 1 << 64, -(1 << 63), 10**30, 0.5, -0.0, 1e-320, 1e17, 1e308, -1e308,
    float("nan"), float("inf"),
)  # fmt: skip
_DEEP, _WIDE = "@deep@", "@wide@"  # what stands for text that is too much to be made as objects
_DEPTHS = (100, 1000, 20_000, 300_000)


def hostile_value(chance: random.Random) -> Any:
    """A value of any kind, seldom one that belongs somewhere."""
    return chance.choice((
        None, True, False, [], {}, [[]], [0], {"a": 1}, _DEEP, _WIDE, "x" * 100_000, "0" + ".1" * 40_000,
        *_TEXTS, *_TEXTS, *_NUMBERS, *_NUMBERS,
    ))  # fmt: skip


def hostile_json(data: bytes, chance: random.Random) -> bytes:
    """The document with one to three changes: of values, of what holds them, and of the text itself."""
    document = json.loads(data)
    for _ in range(chance.randint(1, 3)):
        document = _changed(document, chance)
    text = json.dumps(document, ensure_ascii=chance.random() < 0.5)
    depth = chance.choice(_DEPTHS)
    nested = ("[" * depth + "]" * depth, '{"a":' * depth + "0" + "}" * depth, "[" * depth)
    text = text.replace(f'"{_DEEP}"', chance.choice(nested))
    text = text.replace(
        f'"{_WIDE}"',
        chance.choice(("9" * 5000, "1e99999", f"[{'0,' * 200_000}0]", "[" + "{}," * 9999 + "{}]")),
    )
    made = text.encode(errors="surrogatepass")
    return _damaged(made, chance) if chance.random() < 0.15 else made


def _changed(document: Any, chance: random.Random) -> Any:
    places = list(_places(document))
    if not places:
        return hostile_value(chance)
    holder, key = chance.choice(places)
    kind, value = chance.randrange(8), holder[key]
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder += [value] * chance.choice((1, 3, 5000))
    elif kind == 2 and isinstance(holder, dict):
        holder[chance.choice(_TEXTS)] = value
    elif kind == 3:
        other, there = chance.choice(places)
        holder[key] = json.loads(json.dumps(other[there])) if there in _keys(other) else value
    elif kind == 4 and isinstance(value, (int, float)):
        holder[key] = chance.choice((value + 1, value - 1, -value, value * 1000, float(value)))
    else:
        holder[key] = hostile_value(chance)
    return document


def _keys(holder: Any) -> Any:
    return range(len(holder)) if isinstance(holder, list) else holder


def _places(document: Any) -> Any:
    """(what holds it, key) of every value in a document."""
    if isinstance(document, (dict, list)):
        for key in list(_keys(document)):
            yield document, key
            yield from _places(document[key])


def _damaged(text: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(text) + 1)
    put = chance.choice(
        (b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"\\ud800"', b",", b"}", b'{"schema":1,', b"\x1b[2J")
    )
    return chance.choice((text[:at], text[:at] + put + text[at:], put + text, text + text, b""))
