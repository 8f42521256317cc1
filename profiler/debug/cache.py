"""What is known of a module's debug information, kept in the user's cache folder for later recordings."""

import hashlib
import zlib
from contextlib import suppress
from pathlib import Path

import msgspec

from numaplan.common import NumaplanError, cache_folder, write_document

from .answers import CallSite, Variable
from .code_lines import CodeLines
from .dwarf.sections import Sections
from .types import Field

FOLDER = "names"
_VERSION = b"numaplan names 4\n"
_CHECK = 4  # bytes
_MOST_BYTES = 256 << 20


class Known(msgspec.Struct):
    """Answers by address in the file; None: nothing is said of it. bare: code of which no line is known."""

    sites: dict[int, CallSite] = {}
    statics: dict[int, Variable | None] = {}
    pieces: dict[int, tuple[Field, ...]] = {}
    lines: list[CodeLines] = []
    bare: list[int] = []


def place_of(program: Sections, debug: Sections) -> Path:
    """The file that keeps what is known of a program, whose debug information is in `debug`."""
    key = program.build_id or hashlib.sha256(str(program.path.absolute()).encode()).hexdigest()
    changed = "" if program.build_id else f"-{program.changed_ns}"
    return cache_folder(FOLDER) / key[:2] / f"{key[2:]}-{program.bytes}-{debug.bytes}{changed}"


def load(place: Path) -> Known:
    """What is kept; nothing where there is none, or it is damaged."""
    with suppress(OSError, msgspec.MsgspecError):
        with place.open("rb") as file:
            data = file.read(_MOST_BYTES)
        content = memoryview(data)[len(_VERSION) + _CHECK :]
        if data.startswith(_VERSION) and data[len(_VERSION) :][:_CHECK] == _check_of(content):
            return msgspec.msgpack.decode(content, type=Known)
    return Known()


def save(place: Path, known: Known) -> None:
    """Keep it, where that is possible."""
    content = msgspec.msgpack.encode(known)
    if len(content) < _MOST_BYTES:
        with suppress(OSError, NumaplanError):
            place.parent.mkdir(parents=True, exist_ok=True)
            write_document(place, _VERSION + _check_of(content) + content)


def _check_of(content: bytes | memoryview) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECK, "little")
