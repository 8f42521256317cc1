"""YAML of plain values: mappings and lists in blocks, everything else as JSON, which is YAML, too."""

from collections.abc import Mapping, Sequence
from typing import Any

from .placement import in_json


def in_yaml(value: Mapping[str, Any] | Sequence[Any], indent: int = 0) -> list[str]:
    """The lines of a mapping or list that is not empty."""
    space = " " * indent
    lines: list[str] = []
    if isinstance(value, Mapping):
        for key, item in value.items():
            if _is_block(item):
                lines += [f"{space}{_key(key)}:", *in_yaml(item, indent + 2)]
            else:
                lines.append(f"{space}{_key(key)}: {in_json(item)}")
        return lines
    for item in value:
        if _is_block(item):
            first, *rest = in_yaml(item, indent + 2)
            lines += [f"{space}- {first.lstrip()}", *rest]
        else:
            lines.append(f"{space}- {in_json(item)}")
    return lines


def _is_block(value: Any) -> bool:
    if isinstance(value, (str, bytes)) or not value:
        return False
    return isinstance(value, Mapping) or (isinstance(value, Sequence) and any(map(_is_block, value)))


def _key(key: str) -> str:
    return key if key.isidentifier() else in_json(key)
