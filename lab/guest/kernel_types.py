"""Where the guest's kernel keeps what the plugin watches: members of its structures, by their names.

The kernel describes its own types (BTF, section `.BTF` of the image; Linux' Documentation/bpf/btf.rst has the
format): a header, types one after another, and the text of their names.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

from numaplan.common import MachineLacksError

_MAGIC = 0xEB9F
_STRUCT = 4
# Bytes behind the common part of a type, by its kind: once, and for each of its members.
_BEHIND = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0), 15: (0, 12)}
_BEHIND |= {17: (4, 0), 19: (0, 12)} | dict.fromkeys((2, 7, 8, 9, 10, 11, 12, 16, 18), (0, 0))


def waiting_since(image: Path) -> int:
    """Offset in a task (`struct task_struct`), in bytes, of when it began to wait for a cpu; 0 when not.

    Raises MachineLacksError where the kernel does not describe its types.
    """
    try:
        task, times = _members(_section(image), ("task_struct", "sched_info"))
        return task["sched_info"] + times["last_queued"]
    except (KeyError, ValueError, IndexError, struct.error):
        raise MachineLacksError(
            f"the lab's kernel does not tell where a task waits for its cpu ({image})",
            "run 'nlab setup --renew'",
        ) from None


def _section(image: Path) -> bytes:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with image.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".BTF")
            return bytes(section.data()) if section else b""
    except (ELFError, OSError) as error:
        raise ValueError(str(error)) from error


def _members(data: bytes, names: tuple[str, ...]) -> list[dict[str, int]]:
    """Offsets of the members of structures, in bytes, by name."""
    magic, _, _, head, types_at, types, names_at, _ = struct.unpack_from("<HBBIIIII", data)
    if magic != _MAGIC:
        raise ValueError("no BTF")
    text = data[head + names_at :]
    found: dict[str, dict[str, int]] = {}
    for name, start, count, packed in _structures(data[: head + types_at + types], head + types_at):
        if (known := _text(text, name)) in names:
            fields = (struct.unpack_from("<III", data, start + 12 * i) for i in range(count))
            bits = {_text(text, name): at & 0xFFFFFF if packed else at for name, _, at in fields}
            found[known] = {member: at // 8 for member, at in bits.items()}
    return [found[name] for name in names]


def _structures(data: bytes, at: int) -> Iterator[tuple[int, int, int, bool]]:
    """Of each: its name, where its members start, how many there are, and whether offsets share their word
    with the sizes of bit fields."""
    while at < len(data):
        name, info, _ = struct.unpack_from("<III", data, at)
        kind, count = info >> 24 & 31, info & 0xFFFF
        once, each = _BEHIND[kind]
        if kind == _STRUCT:
            yield name, at + 12, count, bool(info >> 31)
        at += 12 + once + each * count


def _text(texts: bytes, at: int) -> str:
    return texts[at : texts.index(0, at)].decode("ascii", "replace")
