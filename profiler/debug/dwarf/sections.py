"""The sections of an ELF file, read when they are asked for and within bounds."""

import mmap
import os
import stat
import struct
import zlib
from functools import cached_property
from pathlib import Path

from .budget import TooMuchError

MOST_FILE = 8 << 30
MOST_SECTION = 1 << 30  # bytes, unpacked
_MOST_SECTIONS = 65535
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_PACKED = struct.Struct("<IIQQ")
_SHF_COMPRESSED, _SHT_NOBITS, _SHF_EXEC = 0x800, 8, 4
_ZLIB = 1


class Sections:
    """The sections of a 64-bit little-endian file by name; addresses are those in the file.

    Raises TooMuchError for what is no such file, OSError where it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Neither a pipe nor a device is waited for.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            about = os.fstat(file)
            if not stat.S_ISREG(about.st_mode) or not _HEADER.size <= about.st_size <= MOST_FILE:
                raise TooMuchError("no ELF file")
            self.bytes, self.changed_ns = about.st_size, about.st_mtime_ns
            self._data = mmap.mmap(file, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(file)
        self._table = self._read_table()

    def _read_table(self) -> dict[str, tuple[int, int, int, int, int]]:
        """(address, offset, bytes, flags, type) by name; the first of a name."""
        head = _HEADER.unpack_from(self._data)
        size, count, names = head[11], head[12], head[13]
        if head[0][:6] != b"\x7fELF\x02\x01" or size != _SECTION.size or not count or names >= count:
            raise TooMuchError("no 64-bit little-endian ELF file with sections")
        self.machine = int(head[2])
        start = int(head[6])
        if count > _MOST_SECTIONS or start + size * count > len(self._data):
            raise TooMuchError("its sections lie outside of the file")
        rows = list(_SECTION.iter_unpack(self._data[start : start + size * count]))
        texts = self._data[rows[names][4] : rows[names][4] + min(rows[names][5], 1 << 20)]
        found: dict[str, tuple[int, int, int, int, int]] = {}
        for name, kind, flags, address, offset, length, *_ in rows:
            end = texts.find(b"\0", name)
            text = texts[name : max(end, name)].decode("utf-8", "replace")
            found.setdefault(text, (address, offset, length, flags, kind))
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._table

    def close(self) -> None:
        """Release the file."""
        self._data.close()

    def read(self, name: str) -> bytes:
        """The content of a section, unpacked; empty where there is none.

        Raises TooMuchError where it is too long.
        """
        if name not in self._table:
            return b""
        _, offset, length, flags, kind = self._table[name]
        if kind == _SHT_NOBITS:
            return b""
        if length > MOST_SECTION or offset + length > len(self._data):
            raise TooMuchError(f"{name} lies outside of the file")
        data = self._data[offset : offset + length]
        if not flags & _SHF_COMPRESSED:
            return data
        if len(data) < _PACKED.size:
            raise TooMuchError(f"{name} is cut short")
        method, _, size, _ = _PACKED.unpack_from(data)
        if method != _ZLIB or size > MOST_SECTION:
            raise TooMuchError(f"{name} is packed in another way")
        try:
            return zlib.decompressobj().decompress(data[_PACKED.size :], int(size))
        except zlib.error as error:
            raise TooMuchError(f"{name} cannot be unpacked") from error

    def code_at(self, address: int, count: int) -> bytes:
        """What the file has of the program's code there."""
        for start, offset, length, flags, kind in self._table.values():
            if flags & _SHF_EXEC and kind != _SHT_NOBITS and start <= address < start + length:
                return self._data[offset + address - start :][: min(count, start + length - address)]
        return b""

    @cached_property
    def build_id(self) -> str:
        """GNU's, in hex; empty where there is none."""
        note = self.read(".note.gnu.build-id")[:64]
        if len(note) < 16 or note[12:16] != b"GNU\0":
            return ""
        return note[16 : 16 + struct.unpack_from("<I", note, 4)[0]].hex()

    @cached_property
    def debug_link(self) -> str:
        """The name of the file that has the debug information instead, if any: of a file, not a path."""
        name = self.read(".gnu_debuglink")[:4096].partition(b"\0")[0].decode("utf-8", "replace")
        return "" if "/" in name or name in ("", ".", "..") else name
