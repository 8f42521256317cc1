"""Machines in packed files, and files made to fill memory or to write elsewhere."""

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.machine import Machine, archives as packed

TREE = {
    "box/sys/devices/system/cpu/online": b"0-3\n",
    "box/sys/devices/system/node/node0/cpulist": b"0-1\n",
    "box/sys/devices/system/node/node1/cpulist": b"2-3\n",
    "box/sys/devices/system/node/node0/distance": b"10 21\n",
    "box/sys/devices/system/node/node1/distance": b"21 10\n",
}


def archive(files: dict[str, bytes], link: tuple[str, str] | None = None) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        if link:
            member = tarfile.TarInfo(link[0])
            member.type, member.linkname = tarfile.SYMTYPE, link[1]
            tar.addfile(member)
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return data.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress])
def test_a_packed_tree_and_a_packed_document(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "box").write_bytes(pack(archive(TREE)))
    found = Machine.load(str(tmp_path / "box"))
    assert [node.cpus for node in found.nodes] == [(0, 1), (2, 3)]
    assert found.distances == ((10, 21), (21, 10))
    (tmp_path / "machine").write_bytes(pack(Machine.load("3x2").to_json()))
    assert Machine.load(str(tmp_path / "machine")) == Machine.load("3x2")


def test_nothing_is_written_outside(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    traps = {"../trap": b"x", str(outside / "trap"): b"x", "box/link/trap": b"x"}
    (tmp_path / "box").write_bytes(archive({**traps, **TREE}, ("box/link", str(outside))))
    assert len(Machine.load(str(tmp_path / "box")).nodes) == 2
    assert not list(outside.iterdir()) and not (tmp_path / "trap").exists()


def sparse_archive(size: int) -> bytes:
    """A file of `size` bytes without content, as GNU tar has it."""
    member = tarfile.TarInfo(next(iter(TREE)))
    head = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    head[156:157] = tarfile.GNUTYPE_SPARSE
    head[386:410] = b"%011o\0%011o\0" % (0, 0)
    head[483:495] = b"%011o\0" % size
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + bytes(1024)


def overwritten(data: bytes, at: int) -> bytes:
    return data[:at] + b"\xff" * 8 + data[at + 8 :]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (bz2.compress(archive(TREE))[:-40], "damaged"),
        (lzma.compress(b"<a/>")[:-4], "damaged"),
        (gzip.compress(archive(TREE))[:60], "damaged"),
        (overwritten(gzip.compress(archive(TREE)), 20), "damaged"),
        (archive({"box/readme": b"hello"}), "no sys/devices/system"),
        (archive({"a/" * 1500 + "b": b""}), "too deep"),
        (sparse_archive((8 << 30) - 1), "too large"),
        (bz2.compress(b"\0" * ((64 << 20) + 1)), "unpacks to more"),
    ],
    ids=["bz2 cut", "xz cut", "gzip cut", "gzip overwritten", "no machine", "depth", "size", "bomb"],
)
def test_damaged_and_huge_files_are_refused(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "box").write_bytes(data)
    with pytest.raises(UsageError, match=why):
        Machine.load(str(tmp_path / "box"))


def test_a_tree_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MOST_FILES", 3)
    (tmp_path / "box").write_bytes(archive(TREE))
    with pytest.raises(UsageError, match="more than 3 files"):
        Machine.load(str(tmp_path / "box"))


def test_what_is_wrong_with_a_packed_tree_is_said_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "box").write_bytes(archive({"far/sys/devices/system/cpu/online": b"\n"}))
    with pytest.raises(UsageError, match=f"^{tmp_path}/box/far: no cpus"):
        Machine.load(str(tmp_path / "box"))
