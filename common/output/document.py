"""JSON that people review: one key a line, and in a list of objects one object a line; JSON that is none."""

from typing import Any

import msgspec

# What decoding raises for a text that is not the JSON expected, or nested without end.
BAD_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _SchemaOnly(msgspec.Struct):
    schema: str = ""


def schema_of(data: bytes | str) -> str:
    """What a JSON document says that it is; empty where it does not. Raises as of BAD_JSON."""
    return msgspec.json.decode(data, type=_SchemaOnly).schema


def reviewable_json(content: dict[str, Any]) -> bytes:
    """The text of a JSON document of plain values, in the order of its keys."""
    parts = [f"{_line(key)}: {_block(value)}" for key, value in content.items()]
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _block(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        return "[\n  " + ",\n  ".join(_line(item) for item in value) + "\n]"
    if isinstance(value, dict) and any(isinstance(item, (dict, list, tuple)) for item in value.values()):
        return "{\n  " + ",\n  ".join(f"{_line(key)}: {_line(item)}" for key, item in value.items()) + "\n}"
    return _line(value)


def _line(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
